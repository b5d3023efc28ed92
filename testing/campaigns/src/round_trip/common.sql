-- What MariaDB and MySQL both have, made at a MariaDB. Names of tables have no backquote: mydumper 0.10 does not
-- quote it.
CREATE TABLE numbers (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT, t1 TINYINT, t2 TINYINT UNSIGNED NOT NULL DEFAULT 7,
  flag TINYINT(1) NOT NULL DEFAULT 1, s SMALLINT, m MEDIUMINT UNSIGNED, i INT DEFAULT -5, g BIGINT,
  gu BIGINT UNSIGNED, z INT(8) UNSIGNED ZEROFILL, zb BIGINT(20) UNSIGNED ZEROFILL NOT NULL DEFAULT 12, f FLOAT,
  d DOUBLE, dd DOUBLE(12,4), n DECIMAL(65,30), n0 DECIMAL(10,0) NOT NULL DEFAULT 3,
  n2 DECIMAL(12,2) UNSIGNED DEFAULT 1.50, bits BIT(1) NOT NULL DEFAULT b'1', many BIT(64),
  nine BIT(9) DEFAULT b'101010101', y YEAR, yd YEAR NOT NULL DEFAULT 1999,
  PRIMARY KEY (id), UNIQUE KEY by_gu (gu), KEY by_bits (many, id)
) AUTO_INCREMENT=1000 COMMENT='every number; it''s "quoted" \\ and ü';
INSERT INTO numbers (id,t1,t2,flag,s,m,i,g,gu,z,zb,f,d,dd,n,n0,n2,bits,many,nine,y,yd) VALUES
 (1,-128,255,0,-32768,16777215,-2147483648,-9223372036854775808,18446744073709551615,42,77,0.25,
  1.5e308,12345678.1234,12345678901234567890123456789012345.123456789012345678901234567890,9999999999,9999999999.99,
  b'0',x'ffffffffffffffff',b'1',2155,1901),
 (2,127,0,1,32767,0,2147483647,9223372036854775807,0,99999999,18446744073709551615,-1.5,2.5e-300,-0.0001,
  -0.000000000000000000000000000001,-1,0,b'1',0,b'111111111',2000,2000),
 (3,NULL,1,1,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,b'1',NULL,NULL,NULL,1970),
 (4,0,1,1,0,0,0,0,1,0,1,0.1,0.1,0.1,0,0,0,b'1',x'5c2700220a0d1a00',b'0',2026,2026);
CREATE TABLE times (
  id INT NOT NULL PRIMARY KEY, d DATE, t TIME, t6 TIME(6), t3 TIME(3), dt DATETIME, dt6 DATETIME(6),
  ts TIMESTAMP NULL DEFAULT NULL, ts3 TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  made DATETIME DEFAULT CURRENT_TIMESTAMP, touched DATETIME(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6),
  fixed DATE DEFAULT '2020-02-29', fixed_t TIME(2) DEFAULT '-12:34:56.78'
);
INSERT INTO times VALUES
 (1,'1000-01-01','-838:59:59','-838:59:59.000000','838:59:59.000','1000-01-01 00:00:00','9999-12-31 23:59:59.999999',
  '1970-01-01 00:00:01','2038-01-19 03:14:07.999','2024-02-29 12:00:00','2001-01-01 01:01:01.000001','9999-12-31','00:00:00.01'),
 (2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2024-05-06 07:08:09.123','2024-02-29 12:00:00',NULL,NULL,NULL);
-- Not by mydumper: it loads with NO_ZERO_IN_DATE.
INSERT INTO times VALUES
 (3,'0000-00-00','00:00:00','00:00:00.000001','-00:00:00.001','0000-00-00 00:00:00','0000-00-00 00:00:00',
  '2024-10-27 01:30:00','2024-03-31 01:30:00.5','2024-02-29 12:00:00','2024-10-27 02:30:00.123456','2024-00-00','12:00:00');
CREATE TABLE texts (
  id BIGINT NOT NULL AUTO_INCREMENT, c CHAR(10), v VARCHAR(200) NOT NULL DEFAULT '',
  quoted VARCHAR(40) DEFAULT 'it''s a "q" \\ %_', nl VARCHAR(20) DEFAULT 'a\nb\tc\rd',
  tt TINYTEXT, t TEXT, mt MEDIUMTEXT, lt LONGTEXT, general VARCHAR(60) COLLATE utf8mb4_general_ci,
  uni VARCHAR(60) COLLATE utf8mb4_unicode_ci, uni520 VARCHAR(60) COLLATE utf8mb4_unicode_520_ci,
  bin VARCHAR(60) COLLATE utf8mb4_bin, l1 VARCHAR(60) CHARACTER SET latin1,
  l1b VARCHAR(60) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'AO',
  l1c CHAR(8) CHARACTER SET latin1 COLLATE latin1_german1_ci, lt1 TEXT CHARACTER SET latin1,
  u3 VARCHAR(60) CHARACTER SET utf8mb3, a VARCHAR(60) CHARACTER SET ascii,
  e ENUM('', 'small','it''s','a,b','Ünï','back\\slash') DEFAULT 'it''s',
  el ENUM('a','o','e') CHARACTER SET latin1 NOT NULL DEFAULT 'o', s SET('a','b','c','d d','é') NOT NULL DEFAULT 'a,é',
  s2 SET('x','y') DEFAULT NULL,
  PRIMARY KEY (id), KEY by_v (v(10)), KEY by_t (t(30), v), UNIQUE KEY by_bin (bin), KEY by_l1 (l1(4), id),
  KEY by_e (e, s) COMMENT 'a key''s \\ comment'
) AUTO_INCREMENT=77;
INSERT INTO texts (c,v,quoted,nl,tt,t,mt,lt,general,uni,uni520,bin,l1,l1b,l1c,lt1,u3,a,e,el,s,s2) VALUES
 ('abc','O''Connor \\ "x"','''','\0\n\r\Z\t\b\\%\_','tiny',REPEAT('text ü€😀 ',300),REPEAT('medium\n',2000),REPEAT('lång',5000),
  'grün','straße','ﬃ','a','ÄÖÜ€ÿ','éè','äö','Œœ—','ünï','ascii','','e','','x'),
 ('  lead','  trail  ','','','','','','','😀','😀','😀','A','','','','','','','small','a','a,b,c,d d,é','x,y'),
 (NULL,'',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'o','a',NULL),
 ('日本語','ぁあ','한글','','','','','','À','à','Å','b','x','y','z','a','À','c','Ünï','o','c','');
CREATE TABLE bytes (
  id INT NOT NULL, b BINARY(16), bd BINARY(4) NOT NULL DEFAULT 'ab', v VARBINARY(300) DEFAULT 'a''b',
  vd VARBINARY(10) NOT NULL DEFAULT 'plain', tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
  j JSON, PRIMARY KEY (id), UNIQUE KEY by_b (b), KEY by_bl (bl(12))
);
INSERT INTO bytes VALUES
 (1,UNHEX('000102030405060708090A0B0C0D0E0F'),x'00000000',x'5c27220a0d1a00ff80',x'00',x'ff',
  REPEAT(x'00ff5c27220a',1000),REPEAT(x'1a0d0a09',3000),REPEAT(x'fe00',40000),
  '{"a": [1, 2.5, null, true, "x\\"y\\\\z", "ü😀"], "b": {"c": {}}, "big": 18446744073709551615}'),
 (2,NULL,'a','','','','','','','"text"'), (3,x'00',x'61',NULL,'x',NULL,NULL,NULL,NULL,NULL),
 (4,x'01',x'61',NULL,'x',NULL,NULL,NULL,NULL,'[]');
CREATE TABLE parent (
  id INT NOT NULL, code VARCHAR(20) NOT NULL, region INT NOT NULL, PRIMARY KEY (id), UNIQUE KEY by_code (code),
  UNIQUE KEY by_region (region, id)
);
CREATE TABLE child (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, p1 INT, p2 INT, p3 INT, p4 INT NOT NULL, code VARCHAR(20), r INT, ri INT,
  self INT, KEY by_p1 (p1), KEY by_p2 (p2), KEY by_p3 (p3), KEY by_p4 (p4), KEY by_code (code), KEY by_two (r, ri),
  KEY by_self (self),
  CONSTRAINT c_cascade FOREIGN KEY (p1) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT c_code FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE,
  CONSTRAINT c_no_action FOREIGN KEY (p4) REFERENCES parent (id) ON DELETE NO ACTION ON UPDATE NO ACTION,
  CONSTRAINT c_null FOREIGN KEY (p2) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE SET NULL,
  CONSTRAINT c_restrict FOREIGN KEY (p3) REFERENCES parent (id) ON DELETE RESTRICT ON UPDATE RESTRICT,
  CONSTRAINT c_self FOREIGN KEY (self) REFERENCES child (id) ON DELETE SET NULL,
  CONSTRAINT c_two FOREIGN KEY (r, ri) REFERENCES parent (region, id) ON DELETE CASCADE
);
-- A name that comes before what it refers to, and two tables that refer to each other.
CREATE TABLE a_first (id INT PRIMARY KEY, z INT, KEY a_z (z), CONSTRAINT a_z FOREIGN KEY (z) REFERENCES child (id));
ALTER TABLE parent ADD leader INT, ADD KEY by_leader (leader),
  ADD CONSTRAINT p_leader FOREIGN KEY (leader) REFERENCES child (id);
INSERT INTO parent VALUES (1,'one',10,NULL),(2,'two',20,NULL),(3,'thrée',30,NULL);
INSERT INTO child VALUES (1,1,2,3,1,'one',10,1,1),(2,NULL,NULL,NULL,2,NULL,NULL,NULL,1),(5,3,3,3,3,'thrée',20,2,2);
UPDATE parent SET leader = 5 WHERE id = 1;
INSERT INTO a_first VALUES (1,5),(2,NULL);
CREATE TABLE rules (
  id INT NOT NULL AUTO_INCREMENT, a INT, b INT, name VARCHAR(40) NOT NULL DEFAULT 'n',
  total INT GENERATED ALWAYS AS (a + b) STORED, twice BIGINT AS (a * 2) VIRTUAL COMMENT 'twice',
  up VARCHAR(40) GENERATED ALWAYS AS (UPPER(name)) STORED,
  lbl VARCHAR(60) GENERATED ALWAYS AS (CASE WHEN a > 10 THEN 'big' WHEN a IS NULL THEN 'nöne' ELSE CONCAT(name, ' / ', a) END) VIRTUAL,
  PRIMARY KEY (id), KEY by_total (total), UNIQUE KEY by_up (up, id),
  CONSTRAINT loose CHECK (b IN (1,2,3,4,900)), CONSTRAINT named CHECK (name <> '' AND name <> 'it''s'),
  CONSTRAINT sums CHECK (a + b < 1000 OR b IS NULL)
);
INSERT INTO rules (a,b,name) VALUES (1,2,'x'),(20,900,'ünï'),(NULL,NULL,'zz'),(3,4,'n');
CREATE TABLE `odd name` (
  `the key` INT NOT NULL, `select` INT, `ü` INT, `a.b` INT, PRIMARY KEY (`the key`), KEY `key of it` (`select`, `ü`)
);
INSERT INTO `odd name` VALUES (1,2,3,4),(-1,NULL,NULL,NULL);
CREATE TABLE no_primary (a INT, b VARCHAR(10));
INSERT INTO no_primary VALUES (1,'x'),(1,'x'),(NULL,NULL);
CREATE TABLE empty_one (id INT PRIMARY KEY AUTO_INCREMENT, x INT) AUTO_INCREMENT=500;
-- Not by mydumper: it writes definitions in UTF-8 behind SET NAMES binary.
CREATE TABLE latin_words (
  id INT PRIMARY KEY, d VARCHAR(60) DEFAULT 'ÄÖ€', e ENUM('ä','ö','€') NOT NULL DEFAULT 'ö'
) DEFAULT CHARSET=latin1 COMMENT='Tabelle für €';
-- Not by mydumper: see above.
INSERT INTO latin_words (id, e) VALUES (1,'€'),(2,'ä');
CREATE TABLE latin (id INT PRIMARY KEY, v VARCHAR(20), t TEXT) DEFAULT CHARSET=latin1 COMMENT='one byte each';
INSERT INTO latin VALUES (1,'Äß€','ÿŒ');
CREATE TABLE zero_ai (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT);
INSERT INTO zero_ai VALUES (0,1),(-5,2),(3,3);
CREATE TABLE big (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, pad VARCHAR(100) NOT NULL, KEY k (k));
INSERT INTO big (k,pad) WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x+1 FROM n WHERE x < 1000)
  SELECT x*7919%1000, REPEAT(CHAR(97+x%26), x%100) FROM n;
-- The first reads the second.
CREATE DEFINER=root@localhost VIEW z_view AS SELECT id, total, name FROM rules WHERE a > 0;
CREATE DEFINER=root@localhost VIEW a_view (id, doubled, `a label`) AS SELECT id, total * 2, CONCAT(name, 'ü''s') FROM z_view;
CREATE ALGORITHM=MERGE DEFINER=root@localhost SQL SECURITY INVOKER VIEW checked AS SELECT id, a, b FROM rules WHERE a < 100 WITH CASCADED CHECK OPTION;
CREATE ALGORITHM=TEMPTABLE DEFINER=root@localhost VIEW sums_of AS
  SELECT region, COUNT(*) AS n, MAX(code) AS top FROM parent GROUP BY region HAVING COUNT(*) > 0;
CREATE DEFINER=root@localhost VIEW joined AS SELECT p.id AS pid, c.id AS cid, c.code FROM parent p LEFT JOIN child c ON c.p1 = p.id AND c.code LIKE 'o%';
CREATE DEFINER=root@localhost VIEW unions AS SELECT id, 'n' AS src FROM numbers UNION ALL SELECT id, 't' AS src FROM texts;
