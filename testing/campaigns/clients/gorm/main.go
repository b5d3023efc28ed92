// Checks GORM: AutoMigrate twice, types, associations, upserts, JSON, savepoints, locks, paging, the migrator.
// The second AutoMigrate must send no ALTER and no CREATE.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"gorm.io/datatypes"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

var passed, failed int

func check(name string, body func() error) {
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return body()
	}()
	if err != nil {
		failed++
		fmt.Printf("FAIL %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	passed++
	fmt.Println("ok  ", name)
}

func same(want, got any) error {
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
		return fmt.Errorf("want %s, got %s", w, g)
	}
	return nil
}

func all(errs ...error) error { return errors.Join(errs...) }

// recorder keeps the statements that change a schema.
type recorder struct {
	logger.Interface
	mu  sync.Mutex
	ddl []string
}

func (r *recorder) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	sql, _ := fc()
	if up := strings.ToUpper(strings.TrimSpace(sql)); strings.HasPrefix(up, "ALTER") || strings.HasPrefix(up, "CREATE") || strings.HasPrefix(up, "DROP") {
		r.mu.Lock()
		r.ddl = append(r.ddl, sql)
		r.mu.Unlock()
	}
}

func (r *recorder) LogMode(logger.LogLevel) logger.Interface { return r }

type Company struct {
	ID   uint `gorm:"primaryKey"`
	Name string `gorm:"size:64;uniqueIndex;comment:the name"`
}

type Person struct {
	gorm.Model
	Name      string          `gorm:"size:100;not null;index:by_name,priority:1"`
	Age       uint8           `gorm:"index:by_name,priority:2,sort:desc;check:age_known,age < 200"`
	Mail      *string         `gorm:"uniqueIndex;size:80"`
	Balance   float64         `gorm:"type:decimal(20,4);default:1.5000"`
	Active    bool            `gorm:"default:true"`
	Born      *datatypes.Date
	Wakes     datatypes.Time
	Moment    time.Time       `gorm:"precision:6"`
	Data      datatypes.JSON
	Settings  datatypes.JSONType[map[string]any]
	Tags      datatypes.JSONSlice[string]
	Token     datatypes.BinUUID `gorm:"type:binary(16)"`
	Key       uuid.UUID       `gorm:"type:char(36)"`
	Level     string          `gorm:"type:enum('low','high');default:low"`
	Raw       []byte
	Notes     string          `gorm:"type:longtext"`
	Big       uint64
	Small     int8
	Ratio     float32
	CompanyID *uint
	Company   *Company        `gorm:"constraint:OnUpdate:CASCADE,OnDelete:SET NULL"`
	Pets      []Pet           `gorm:"constraint:OnDelete:CASCADE"`
	Clubs     []Club          `gorm:"many2many:person_clubs"`
}

type Pet struct {
	ID       uint
	PersonID uint
	Name     string `gorm:"size:40;default:plain"`
	Weight   float64
}

type Club struct {
	Code  string `gorm:"primaryKey;size:10"`
	Title string
}

var models = []any{&Company{}, &Person{}, &Pet{}, &Club{}}

func main() {
	password := os.Getenv("CLIENT_PASSWORD")
	dsn := fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?charset=utf8mb4&parseTime=True&loc=UTC", os.Getenv("CLIENT_USER"), password,
		os.Getenv("CLIENT_HOST"), os.Getenv("CLIENT_PORT"), os.Getenv("CLIENT_DATABASE"))
	log := &recorder{Interface: logger.Discard}
	db, err := gorm.Open(mysql.Open(dsn), &gorm.Config{Logger: log})
	if err != nil {
		fmt.Println("FAIL open:", err)
		os.Exit(1)
	}
	schema(db, log)
	rows(db)
	queries(db)
	check("with prepared statements", func() error {
		p := db.Session(&gorm.Session{PrepareStmt: true})
		var n int64
		for i := 0; i < 3; i++ {
			if err := p.Model(&Person{}).Where("age > ?", i).Count(&n).Error; err != nil {
				return err
			}
		}
		return same(3, n)
	})
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func schema(db *gorm.DB, log *recorder) {
	for round := 1; round <= 2; round++ {
		check(fmt.Sprint("migrate ", round), func() error { return db.AutoMigrate(models...) })
		check(fmt.Sprint("migrate again finds nothing ", round), func() error {
			log.ddl = nil
			return all(db.AutoMigrate(models...), same("", strings.Join(log.ddl, "; ")))
		})
		if round == 1 {
			check("drop", func() error {
				return db.Migrator().DropTable(&Pet{}, "person_clubs", &Person{}, &Company{}, &Club{})
			})
		}
	}
	check("migrator", func() error {
		m := db.Migrator()
		types, err := m.ColumnTypes(&Person{})
		if err != nil {
			return err
		}
		var got []string
		for _, t := range types {
			full, _ := t.ColumnType()
			null, _ := t.Nullable()
			def, _ := t.DefaultValue()
			got = append(got, fmt.Sprintf("%s %s %v %s", t.Name(), full, null, def))
		}
		text := strings.Join(got, ", ")
		for _, want := range []string{"id bigint unsigned false", "name varchar(100) false", "balance decimal(20,4) true 1.5000", "active tinyint(1) true 1",
			"moment datetime(6) true", "level enum('low','high') true low", "data json true", "born date true", "big bigint unsigned true"} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("no %s in %s", want, text)
			}
		}
		indexes, err := m.GetIndexes(&Person{})
		names := map[string]string{}
		for _, i := range indexes {
			unique, _ := i.Unique()
			names[i.Name()] = fmt.Sprint(i.Columns(), unique)
		}
		return all(err, same("[name age] false", names["by_name"]), same("[mail] true", names["idx_people_mail"]), same("[id] true", names["PRIMARY"]),
			same(true, m.HasConstraint(&Person{}, "age_known")), same(true, m.HasConstraint(&Person{}, "Pets")), same(true, m.HasTable("person_clubs")),
			same(true, m.HasIndex(&Person{}, "by_name")), same(true, m.HasColumn(&Pet{}, "weight")), same(os.Getenv("CLIENT_DATABASE"), m.CurrentDatabase()))
	})
	check("migrator changes", func() error {
		m := db.Migrator()
		type Extra struct {
			ID   uint
			Old  string `gorm:"size:20"`
			More int
		}
		return all(m.CreateTable(&Extra{}), m.RenameColumn(&Extra{}, "old", "fresh"), m.DropColumn(&Extra{}, "more"), same(true, m.HasColumn(&Extra{}, "fresh")),
			m.RenameTable("extras", "others"), same(true, m.HasTable("others")), m.DropTable("others"),
			m.CreateView("adults", gorm.ViewOption{Query: db.Model(&Person{}).Where("age > 17"), Replace: true}), m.DropView("adults"))
	})
}
