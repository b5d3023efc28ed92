// Rows and queries of the GORM checks: round trips, associations, upserts, JSON, locks, transactions.
// All answers are those for the three people that rows creates.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"gorm.io/datatypes"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

func code(err error) uint16 {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func rows(db *gorm.DB) {
	born := datatypes.Date(time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC))
	moment := time.Date(2024, 12, 31, 23, 59, 59, 123456000, time.UTC)
	mail := func(s string) *string { return &s }
	key := uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef")
	check("round trip of types", func() error {
		ann := Person{Name: "Ann 😀 O'Neil \\", Age: 30, Mail: mail("ann@x"), Balance: 1234.5678, Born: &born, Wakes: datatypes.NewTime(6, 30, 15, 0), Moment: moment,
			Data: datatypes.JSON(`{"a": [1, 2.5, null], "b": "😀", "n": 7}`), Settings: datatypes.NewJSONType(map[string]any{"theme": "dark"}),
			Tags: datatypes.NewJSONSlice([]string{"x", "y"}), Token: datatypes.BinUUID(key), Key: key, Level: "high", Raw: bytes.Repeat([]byte{0, 255, 39}, 50000),
			Notes: strings.Repeat("ü", 70000), Big: 18446744073709551615, Small: -128, Ratio: 0.25,
			Company: &Company{Name: "Acme"}, Pets: []Pet{{Name: "Rex", Weight: 2.5}, {Weight: 1}}, Clubs: []Club{{"c1", "One"}, {"c2", "Two"}}}
		if err := db.Create(&ann).Error; err != nil {
			return err
		}
		var p Person
		if err := db.Preload(clause.Associations).First(&p, "mail = ?", "ann@x").Error; err != nil {
			return err
		}
		return all(same(ann.Name, p.Name), same(1234.5678, p.Balance), same(true, p.Active), same(time.Time(born), time.Time(*p.Born)), same("06:30:15", p.Wakes), same(moment, p.Moment.UTC()),
			same(`{"a": [1, 2.5, null], "b": "😀", "n": 7}`, p.Data), same("dark", p.Settings.Data()["theme"]), same([]string{"x", "y"}, p.Tags), same(key, p.Token),
			same(key, p.Key), same("high", p.Level), same(true, bytes.Equal(ann.Raw, p.Raw)), same(70000, strings.Count(p.Notes, "ü")), same(uint64(18446744073709551615), p.Big),
			same(-128, p.Small), same(0.25, p.Ratio), same("Acme", p.Company.Name), same(2, len(p.Pets)), same("plain", p.Pets[1].Name), same(2, len(p.Clubs)), same(ann.ID, p.ID))
	})
	check("batches give their keys", func() error {
		people := []Person{{Name: "Bob", Age: 40, Moment: moment}, {Name: "Cy", Age: 20, Moment: moment, Data: datatypes.JSON(`{"n": 3}`)}}
		err := db.CreateInBatches(&people, 10).Error
		return all(err, same(people[0].ID+1, people[1].ID), same(true, people[0].ID > 0))
	})
	check("upserts", func() error {
		up := clause.OnConflict{UpdateAll: true}
		one := db.Clauses(up).Create(&Club{"c3", "Three"})
		two := db.Clauses(up).Create(&Club{"c3", "Drei"})
		three := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Club{"c3", "No"})
		var c Club
		db.First(&c, "code = 'c3'")
		return all(one.Error, two.Error, three.Error, same("1 2 0 Drei", fmt.Sprintf("%d %d %d %s", one.RowsAffected, two.RowsAffected, three.RowsAffected, c.Title)))
	})
	check("first or create, save, update", func() error {
		var c Company
		e1 := db.Where(Company{Name: "Umbrella"}).FirstOrCreate(&c).Error
		e2 := db.Where(Company{Name: "Umbrella"}).FirstOrCreate(&c).Error
		c.Name = "Umbrella 2"
		e3 := db.Save(&c).Error
		r := db.Model(&Person{}).Where("name = ?", "Bob").Updates(map[string]any{"age": gorm.Expr("age + ?", 1), "company_id": c.ID})
		return all(e1, e2, e3, r.Error, same(1, r.RowsAffected))
	})
	check("errors", func() error {
		return all(same(1062, code(db.Create(&Company{Name: "Acme"}).Error)), same(1452, code(db.Create(&Pet{PersonID: 999}).Error)),
			same(3819, code(db.Create(&Person{Name: "old", Age: 250, Moment: moment}).Error)), same(1265, code(db.Exec("UPDATE people SET level = 'x'").Error)),
			same(true, errors.Is(db.First(&Person{}, 12345).Error, gorm.ErrRecordNotFound)))
	})
	check("transactions and savepoints", func() error {
		err := db.Transaction(func(tx *gorm.DB) error {
			tx.Create(&Club{"t1", "x"})
			inner := tx.Transaction(func(in *gorm.DB) error {
				in.Create(&Club{"t2", "x"})
				return errors.New("inner")
			})
			tx.SavePoint("sp")
			tx.Create(&Club{"t3", "x"})
			tx.RollbackTo("sp")
			return same("inner", inner)
		})
		var codes []string
		db.Model(&Club{}).Where("code LIKE 't_'").Order("code").Pluck("code", &codes)
		return all(err, same("[t1]", codes))
	})
	check("soft delete and cascade", func() error {
		r := db.Where("name = ?", "Bob").Delete(&Person{})
		var n, m int64
		db.Model(&Person{}).Count(&n)
		db.Unscoped().Model(&Person{}).Count(&m)
		db.Unscoped().Model(&Person{}).Where("name = ?", "Bob").Update("deleted_at", nil)
		return all(r.Error, same("1 2 3", fmt.Sprint(r.RowsAffected, n, m)))
	})
}

func queries(db *gorm.DB) {
	names := func(tx *gorm.DB) string {
		var out []string
		if err := tx.Model(&Person{}).Order("people.name").Pluck("people.name", &out).Error; err != nil {
			return err.Error()
		}
		for i := range out {
			out[i], _, _ = strings.Cut(out[i], " ")
		}
		return strings.Join(out, ",")
	}
	check("conditions, joins and subqueries", func() error {
		return all(same("Ann,Bob", names(db.Where("age BETWEEN ? AND ?", 25, 45))), same("Ann,Cy", names(db.Where("age IN ?", []int{30, 20}))),
			same("Ann", names(db.Joins("Company").Where("Company.name = ?", "Acme"))), same("Ann", names(db.Where("EXISTS (?)", db.Model(&Pet{}).Select("1").Where("pets.person_id = people.id")))),
			same("Bob", names(db.Where("age > (?)", db.Model(&Person{}).Select("AVG(age)")))), same("Cy", names(db.Where("company_id IS NULL"))),
			same("Bob", names(db.Not("age < ?", 40).Or("name = ?", "nobody"))))
	})
	check("JSON queries", func() error {
		return all(same("Ann,Cy", names(db.Where(datatypes.JSONQuery("data").HasKey("n")))), same("Cy", names(db.Where(datatypes.JSONQuery("data").Equals(3, "n")))),
			same("Ann", names(db.Where(datatypes.JSONQuery("data").Likes("%😀%", "b")))), same("Ann", names(db.Where(datatypes.JSONArrayQuery("tags").Contains("x")))),
			db.Model(&Person{}).Where("name = 'Cy'").UpdateColumn("data", datatypes.JSONSet("data").Set("n", 4).Set("arr", []int{1, 2})).Error,
			same("Cy", names(db.Where(datatypes.JSONQuery("data").Equals(4, "n")))))
	})
	check("paging, grouping and windows", func() error {
		var out []struct {
			Name string
			N    int
			Sum  float64
		}
		err := db.Raw("SELECT LEFT(name, 2) AS name, ROW_NUMBER() OVER (ORDER BY age DESC) AS n, SUM(age) OVER (ORDER BY age) AS sum FROM people WHERE deleted_at IS NULL ORDER BY n LIMIT ? OFFSET ?", 2, 1).Scan(&out).Error
		var total []struct {
			Level string
			C     int64
		}
		e2 := db.Model(&Person{}).Select("level, COUNT(*) AS c").Group("level").Having("COUNT(*) > ?", 1).Scan(&total).Error
		return all(err, e2, same("[{An 2 50} {Cy 3 20}]", out), same("[{low 2}]", total))
	})
	check("rows one by one, batches of rows", func() error {
		n := 0
		var batch []Pet
		r := db.FindInBatches(&batch, 1, func(tx *gorm.DB, k int) error { n += len(batch); return nil })
		return all(r.Error, same(2, n))
	})
	check("locks", func() error {
		return db.Transaction(func(tx *gorm.DB) error {
			var p Person
			err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&p, "name = 'Bob'").Error
			other := db.Transaction(func(o *gorm.DB) error {
				return o.Clauses(clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}).First(&Person{}, "id = ?", p.ID).Error
			})
			return all(err, same(3572, code(other)))
		})
	})
	check("many goroutines", func() error {
		var wg sync.WaitGroup
		errs := make([]error, 10)
		for g := range errs {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; i < 20 && errs[g] == nil; i++ {
					errs[g] = db.Model(&Person{}).Where("name = ?", "Cy").UpdateColumn("big", gorm.Expr("big + 1")).Error
				}
			}()
		}
		wg.Wait()
		var p Person
		db.First(&p, "name = 'Cy'")
		return all(append(errs, same(200, p.Big))...)
	})
	check("associations", func() error {
		var p Person
		db.First(&p, "name = 'Cy'")
		clubs := func() *gorm.Association { return db.Model(&p).Association("Clubs") }
		return all(clubs().Append([]Club{{"c1", "One"}, {"c9", "Nine"}}), same(2, clubs().Count()), clubs().Replace([]Club{{"c9", "Nine"}}), same(1, clubs().Count()),
			clubs().Clear(), same(0, clubs().Count()))
	})
}
