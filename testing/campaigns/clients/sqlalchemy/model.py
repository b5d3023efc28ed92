"""The tables of the application, as SQLAlchemy models.
They are also what the migrations are made from."""

import datetime as dt
import decimal
import enum
import uuid
from typing import Optional

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Colour(enum.Enum):
    red = "red"
    green = "green"


book_genre = sa.Table(
    "book_genre",
    Base.metadata,
    sa.Column("book_id", sa.ForeignKey("book.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("genre_id", sa.ForeignKey("genre.id", ondelete="RESTRICT"), primary_key=True),
)


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(50), unique=True)
    books: Mapped[list["Book"]] = relationship(
        back_populates="author", order_by="Book.id", cascade="all, delete-orphan", passive_deletes=True
    )


class Genre(Base):
    __tablename__ = "genre"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(20), unique=True)


class Book(Base):
    __tablename__ = "book"
    __table_args__ = (
        sa.CheckConstraint("price >= 0", name="price"),
        sa.Index("ix_book_title_price", "title", "price"),
        {"comment": "what authors write"},
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id", ondelete="CASCADE"))
    title: Mapped[str] = mapped_column(sa.String(100))
    price: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(10, 2), server_default=sa.text("'0.00'"))
    doubled: Mapped[decimal.Decimal] = mapped_column(
        sa.Numeric(10, 2), sa.Computed("price * 2", persisted=True)
    )
    data: Mapped[Optional[dict]] = mapped_column(sa.JSON)
    author: Mapped[Author] = relationship(back_populates="books")
    genres: Mapped[list[Genre]] = relationship(secondary=book_genre, order_by=Genre.id)


class Types(Base):
    __tablename__ = "types"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    small: Mapped[int] = mapped_column(sa.SmallInteger)
    big: Mapped[int] = mapped_column(mysql.BIGINT(unsigned=True))
    exact: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(40, 9))
    double: Mapped[float] = mapped_column(sa.Double)
    truth: Mapped[bool]
    day: Mapped[dt.date]
    moment: Mapped[dt.datetime] = mapped_column(mysql.DATETIME(fsp=6))
    clock: Mapped[dt.time] = mapped_column(mysql.TIME(fsp=3))
    span: Mapped[dt.timedelta] = mapped_column(sa.Interval)
    key: Mapped[uuid.UUID] = mapped_column(sa.Uuid)
    blob: Mapped[bytes] = mapped_column(sa.LargeBinary)
    text: Mapped[str] = mapped_column(sa.Text)
    colour: Mapped[Colour]
    nothing: Mapped[Optional[int]]
    changed: Mapped[dt.datetime] = mapped_column(sa.TIMESTAMP, server_default=sa.text("CURRENT_TIMESTAMP"))
