// The entities: a shop with customers, orders, lines, tags and an inheritance tree.
// They use the types and associations that schema tools have to create and recognise.
import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import org.hibernate.annotations.*;
import org.hibernate.type.SqlTypes;

final class Model {

    enum Level {
        LOW,
        MIDDLE,
        HIGH,
    }

    record Settings(String theme, int size, List<String> tags) {}

    @Embeddable
    static class Address {

        @Column(length = 80)
        String street;

        @Column(name = "postal_code", length = 10)
        String code;

        Address() {}

        Address(String street, String code) {
            this.street = street;
            this.code = code;
        }
    }

    @Entity(name = "Customer")
    @Table(name = "customers", indexes = @Index(name = "by_name", columnList = "name, born"))
    static class Customer {

        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @Version
        int version;

        @Column(nullable = false, length = 100)
        String name;

        @NaturalId
        @Column(length = 60)
        String mail;

        LocalDate born;

        @Embedded
        Address address;

        @JdbcTypeCode(SqlTypes.JSON)
        Map<String, Object> settings = new HashMap<>();

        @Enumerated(EnumType.STRING)
        Level level = Level.LOW;

        @Enumerated(EnumType.ORDINAL)
        Level standing = Level.LOW;

        UUID token;

        @JdbcTypeCode(SqlTypes.CHAR)
        UUID shown;

        @Lob
        byte[] picture;

        @Lob
        String notes;

        @Column(precision = 20, scale = 4)
        BigDecimal credit = BigDecimal.ZERO;

        boolean active = true;
        double score;
        Instant created;
        LocalDateTime changed;

        @Column(columnDefinition = "time(6)")
        LocalTime wakes;

        @ElementCollection
        @CollectionTable(name = "phones")
        @Column(name = "number", length = 20)
        Set<String> phones = new TreeSet<>();

        @OneToMany(
            mappedBy = "customer",
            cascade = jakarta.persistence.CascadeType.ALL,
            orphanRemoval = true
        )
        @OrderBy("id")
        List<Purchase> purchases = new ArrayList<>();

        @ManyToMany
        @JoinTable(name = "customer_tags")
        Set<Tag> tags = new HashSet<>();

        Customer() {}

        Customer(String name, String mail) {
            this.name = name;
            this.mail = mail;
        }
    }

    @Entity(name = "Purchase")
    @Table(name = "purchases")
    static class Purchase {

        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @ManyToOne(optional = false, fetch = FetchType.LAZY)
        @OnDelete(action = OnDeleteAction.CASCADE)
        Customer customer;

        @Column(precision = 12, scale = 2, nullable = false)
        BigDecimal total;

        @CreationTimestamp
        Instant at;

        LocalDate day;

        Purchase() {}

        Purchase(Customer c, String total, LocalDate day) {
            customer = c;
            this.total = new BigDecimal(total);
            this.day = day;
            c.purchases.add(this);
        }
    }

    @Entity(name = "Tag")
    @Table(name = "tags")
    static class Tag {

        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE)
        Integer id;

        @Column(unique = true, length = 40)
        String label;

        Tag() {}

        Tag(String label) {
            this.label = label;
        }
    }

    @Entity(name = "Vehicle")
    @Inheritance(strategy = InheritanceType.JOINED)
    static class Vehicle {

        @Id
        @GeneratedValue(strategy = GenerationType.TABLE)
        Long id;

        @Column(length = 30)
        String plate;

        int wheels;
    }

    @Entity(name = "Truck")
    static class Truck extends Vehicle {

        double tons;
    }

    @Entity(name = "Bike")
    static class Bike extends Vehicle {

        boolean electric;
    }

    @Entity(name = "Payment")
    @Inheritance
    @DiscriminatorColumn(name = "kind")
    static class Payment {

        @Id
        UUID id = UUID.randomUUID();

        @Column(precision = 10, scale = 2)
        BigDecimal amount;
    }

    @Entity(name = "CardPayment")
    @DiscriminatorValue("card")
    static class CardPayment extends Payment {

        @Column(length = 20)
        String card;
    }

    @Entity(name = "Node")
    @Table(name = "nodes")
    static class Node {

        @Id
        Integer id;

        String label;

        @ManyToOne(fetch = FetchType.LAZY)
        Node parent;

        Node() {}

        Node(int id, String label, Node parent) {
            this.id = id;
            this.label = label;
            this.parent = parent;
        }
    }

    static final Class<?>[] ALL = {
        Customer.class,
        Purchase.class,
        Tag.class,
        Vehicle.class,
        Truck.class,
        Bike.class,
        Payment.class,
        CardPayment.class,
        Node.class,
    };
}
