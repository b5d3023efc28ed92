"""The models of the application `library`.
Their migrations are made by makemigrations, not written."""

from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=50, unique=True)


class Genre(models.Model):
    name = models.CharField(max_length=20, unique=True)


class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    title = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    doubled = models.GeneratedField(
        expression=models.F("price") * 2,
        db_persist=True,
        output_field=models.DecimalField(max_digits=12, decimal_places=2),
    )
    data = models.JSONField(null=True)
    genres = models.ManyToManyField(Genre)

    class Meta:
        indexes = [models.Index(fields=["title", "price"], name="title_price")]
        constraints = [
            models.CheckConstraint(condition=models.Q(price__gte=0), name="price_not_negative"),
            models.UniqueConstraint(fields=["author", "title"], name="author_title"),
        ]
        db_table_comment = "what authors write"


class Types(models.Model):
    small = models.SmallIntegerField()
    big = models.BigIntegerField()
    exact = models.DecimalField(max_digits=40, decimal_places=9)
    double = models.FloatField()
    truth = models.BooleanField()
    day = models.DateField()
    moment = models.DateTimeField()
    clock = models.TimeField()
    span = models.DurationField()
    key = models.UUIDField()
    raw = models.BinaryField()
    text = models.TextField()
    address = models.GenericIPAddressField()
    nothing = models.IntegerField(null=True)
