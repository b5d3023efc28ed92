/* comment */ ALTER TABLE people ADD COLUMN mail VARCHAR(80) NULL AFTER name, ADD UNIQUE KEY one_mail (mail);
-- a comment; with a semicolon
UPDATE people SET mail = CONCAT(LOWER(LEFT(name, 3)), '@x'); # another
CREATE INDEX by_name ON pets (name(10) DESC);
/*!50001 CREATE VIEW adults AS SELECT id, name FROM people WHERE born < '2006-01-01' */;
