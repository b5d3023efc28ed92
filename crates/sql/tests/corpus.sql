-- sysbench
CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) /*! ENGINE = innodb */
CREATE TABLE sbtest1(id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, KEY xid (id)) /*! ENGINE = innodb */ ROW_FORMAT=DYNAMIC
INSERT INTO sbtest1(k, c, pad) VALUES(499284, 'abc-def', 'x'),(1, '', '')
INSERT INTO sbtest1(id, k, c, pad) VALUES(1, 499284, 'abc', 'x'),(2, 1, 'a''b', 'c\'d')
CREATE INDEX k_1 ON sbtest1(k)
SET tmp_table_size=2*1024*1024*1024
SET max_heap_table_size=2*1024*1024*1024
ANALYZE TABLE sbtest1
SELECT AVG(id) FROM (SELECT * FROM sbtest1 FORCE KEY (PRIMARY) LIMIT 10000) t
SELECT COUNT(*) FROM (SELECT * FROM sbtest1 WHERE k LIKE '%0%' LIMIT 10000) t
SELECT c FROM sbtest1 WHERE id=?
SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?
SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?
SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c
UPDATE sbtest1 SET k=k+1 WHERE id=?
UPDATE sbtest1 SET c=? WHERE id=?
DELETE FROM sbtest1 WHERE id=?
INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)
BEGIN
COMMIT
SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?)
SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ? OR k BETWEEN ? AND ?
CREATE TABLE IF NOT EXISTS sbtest1 (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id)) /*! ENGINE = innodb */
INSERT INTO sbtest1 VALUES(1,1),(2,2)
DROP TABLE IF EXISTS sbtest1
-- TPC-C
SHOW VARIABLES LIKE 't%_isolation'
SET SESSION transaction_isolation='REPEATABLE-READ'
SET FOREIGN_KEY_CHECKS=0
SET autocommit=0
CREATE TABLE IF NOT EXISTS customer1 (c_id int not null, c_d_id tinyint not null, c_w_id smallint not null, c_since datetime, c_credit char(2), c_credit_lim bigint, c_discount decimal(4,2), c_balance decimal(12,2), c_data text, PRIMARY KEY(c_w_id, c_d_id, c_id)) /*! ENGINE = innodb */
INSERT INTO item1 (i_id, i_im_id, i_name, i_price, i_data) values(1,2,'n',12.345678,'d'),(2,3,'n',1.5,'d')
CREATE INDEX idx_customer1 ON customer1 (c_w_id,c_d_id,c_last,c_first)
ALTER TABLE new_orders1 ADD CONSTRAINT fkey_new_orders_1_1 FOREIGN KEY(no_w_id,no_d_id,no_o_id) REFERENCES orders1(o_w_id,o_d_id,o_id)
ALTER TABLE t DROP FOREIGN KEY fkey
SET SESSION autocommit=1
INSERT INTO new_orders1 (no_o_id, no_d_id, no_w_id) SELECT o_id, o_d_id, o_w_id FROM orders1 WHERE o_id>2100 and o_w_id=1
INSERT INTO orders1 (o_id, o_entry_d, o_carrier_id) VALUES (1, NOW(), NULL)
START TRANSACTION READ WRITE
START TRANSACTION READ ONLY
SELECT c_discount, c_last, c_credit, w_tax FROM customer1, warehouse1 WHERE w_id = 1 AND c_w_id = w_id AND c_d_id = 2 AND c_id = 3
SELECT d_next_o_id, d_tax FROM district1 WHERE d_w_id = 1 AND d_id = 2 FOR UPDATE
SELECT s_quantity, s_data, s_dist_01 s_dist FROM stock1 WHERE s_i_id = 1 AND s_w_id= 1 FOR UPDATE
UPDATE warehouse1 SET w_ytd = w_ytd + 12 WHERE w_id = 1
SELECT count(c_id) namecnt FROM customer1 WHERE c_w_id = 1 AND c_d_id= 1 AND c_last='BAR'
SELECT o_id, o_carrier_id, o_entry_d FROM orders1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_c_id = 1 ORDER BY o_id DESC
SELECT no_o_id FROM new_orders1 WHERE no_d_id = 1 AND no_w_id = 1 ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE
UPDATE customer1 SET c_balance = c_balance + 1.500000, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = 1 AND c_d_id = 1 AND c_w_id = 1
SELECT COUNT(DISTINCT (s_i_id)) FROM order_line1, stock1 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id < 3000 AND ol_o_id >= 2980 AND s_w_id= 1 AND s_i_id=ol_i_id AND s_quantity < 15
SELECT o_id FROM orders1 o, (SELECT o_c_id,o_w_id,o_d_id,count(distinct o_id) FROM orders1 WHERE o_w_id=1 AND o_d_id=1 AND o_id > 2100 AND o_id < 3000 GROUP BY o_c_id,o_d_id,o_w_id having count( distinct o_id) > 1 limit 1) t WHERE t.o_w_id=o.o_w_id and t.o_d_id=o.o_d_id and t.o_c_id=o.o_c_id limit 1
DELETE FROM history1 where h_w_id=1 AND h_d_id=1 LIMIT 10
SELECT d_w_id,sum(d_ytd)-max(w_ytd) diff FROM district1,warehouse1 WHERE d_w_id=w_id AND w_id=1 group by d_w_id
SELECT * FROM (SELECT o_w_id, o_d_id, max(o_id) mo FROM orders1 GROUP BY o_w_id, o_d_id) o, (SELECT no_w_id, max(no_o_id) mno FROM new_orders1 GROUP BY no_w_id) no WHERE o.o_w_id = no.no_w_id
SELECT count(*) FROM orders1 LEFT JOIN new_orders1 ON (no_w_id=o_w_id AND no_o_id = o_id) WHERE o_carrier_id IS NULL OR no_o_id IS NOT NULL
SELECT c_id, (SELECT sum(ol_amount) FROM orders1 STRAIGHT_JOIN order_line1 WHERE OL_W_ID = O_W_ID) sm FROM customer1 c WHERE c.C_ID <> 1
SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0;
SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS;
INSERT INTO stock values(?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0,?)
UPDATE district SET d_next_o_id = ? + 1 WHERE d_id = ?
SELECT count(*) FROM order_line WHERE ol_o_id < ? AND ol_o_id >= (? - 20)
SELECT COALESCE(MIN(no_o_id),0) FROM new_orders WHERE no_d_id = ?
SELECT o_id, o_entry_d, COALESCE(o_carrier_id,0) FROM orders WHERE o_w_id = ? AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_w_id = ?)
SELECT DISTINCT ol_i_id FROM order_line WHERE ol_w_id = ?
-- mysqldump
/*!40100 SET @@SQL_MODE='' */
/*!40103 SET TIME_ZONE='+00:00' */
/*M!100100 SET @@MAX_STATEMENT_TIME=0.000000 */
set optimizer_switch='semijoin=off'
SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IN (SELECT DISTINCT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'DATAFILE' AND TABLESPACE_NAME IN (SELECT DISTINCT TABLESPACE_NAME FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA IN ('db'))) GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE ORDER BY LOGFILE_GROUP_NAME
SHOW CREATE DATABASE IF NOT EXISTS `db`
LOCK TABLES `t1` READ /*!32311 LOCAL */,`t2` READ /*!32311 LOCAL */
SELECT engine, table_type FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() AND table_name = 't1'
SET SQL_QUOTE_SHOW_CREATE=1
SET SESSION character_set_results = 'binary'
show create table `t1`
select column_name, extra, generation_expression, data_type from information_schema.columns where table_schema=database() and table_name='t1' order by ordinal_position
SELECT /*!40001 SQL_NO_CACHE */ `id`, `k` FROM `t1`
select @@collation_database
SELECT TRIGGER_NAME FROM INFORMATION_SCHEMA.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = 't1'
UNLOCK TABLES
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */
SAVEPOINT sp
ROLLBACK TO SAVEPOINT sp
RELEASE SAVEPOINT sp
SHOW STATUS LIKE 'binlog_snapshot_%'
FLUSH /*!40101 LOCAL */ TABLES
FLUSH TABLES WITH READ LOCK
SHOW MASTER STATUS
SHOW FIELDS FROM `v`
SHOW FUNCTION STATUS WHERE Db = 'db'
show events
SHOW KEYS FROM `t`
SELECT table_name, table_type FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() ORDER BY data_length, table_name
SELECT `COLUMN_NAME` AS `Field`, `COLUMN_TYPE` AS `Type`, `IS_NULLABLE` AS `Null`, `COLUMN_KEY` AS `Key`, `COLUMN_DEFAULT` AS `Default`, `EXTRA` AS `Extra`, `COLUMN_COMMENT` AS `Comment` FROM `INFORMATION_SCHEMA`.`COLUMNS` WHERE TABLE_SCHEMA = 'db' AND TABLE_NAME = 't1' ORDER BY ORDINAL_POSITION
/*!80000 SET SESSION information_schema_stats_expiry=0 */
SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400
SHOW VARIABLES LIKE 'gtid\_mode'
show table status like 't1'
SHOW TRIGGERS LIKE 't1'
SELECT COLUMN_NAME, JSON_EXTRACT(HISTOGRAM, '$."number-of-buckets-specified"') FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'db' AND TABLE_NAME = 't1';
/*M!999999\- enable the sandbox mode */
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `db` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;
USE `db`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t1` ( `id` int NOT NULL AUTO_INCREMENT, `b` longblob, `e` enum('a','b') DEFAULT 'a', `ts` timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, `d` decimal(10,2) DEFAULT NULL, `dt` datetime(6) DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (`id`), UNIQUE KEY `u` (`e`), KEY `p` (`b`(10)) ) ENGINE=InnoDB AUTO_INCREMENT=101 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `t1` WRITE;
/*!40000 ALTER TABLE `t1` DISABLE KEYS */;
INSERT INTO `t1` VALUES (1,'a',0x00FF,_binary 'abc',-1.5,NULL,'2024-01-01 00:00:00'),(2,X'41',b'1',N'x',1e3,TRUE,DEFAULT)
/*!40000 ALTER TABLE `t1` ENABLE KEYS */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;
-- interactive clients
select @@version_comment limit 1
SELECT DATABASE()
select USER()
select DATABASE(), USER() limit 1
select @@character_set_client, @@character_set_connection, @@character_set_server, @@character_set_database limit 1
SET SQL_SAFE_UPDATES=1,SQL_SELECT_LIMIT=1000,MAX_JOIN_SIZE=1000000
select $$
KILL QUERY 5
KILL 5
show /*!50002 GLOBAL */ status
show /*!40003 GLOBAL */ variables
show full processlist
create database `x`
drop database `x`
flush privileges
set local sql_log_bin=0
SHOW VARIABLES LIKE 'pid_file'
set password='abc'
SET PASSWORD FOR 'u'@'%' = PASSWORD('x')
CHECK TABLE `t` FOR UPGRADE
OPTIMIZE TABLE `a`, `b`
ANALYZE NO_WRITE_TO_BINLOG TABLE t
ALTER TABLE `t` FORCE
FLUSH TABLES `t`
SHOW /*!50002 FULL*/ TABLES
show databases like 'a%'
show tables from `d` like '%'
show table status from `d` like 't'
show /*!32332 FULL */ columns from `t`
select count(*) from `t`
DROP SCHEMA IF EXISTS `mysqlslap`
CREATE SCHEMA `mysqlslap`
set default_storage_engine=`InnoDB`
CREATE TABLE `t1` (id serial,intcol1 INT(32) ,charcol1 VARCHAR(128))
CREATE TABLE `t1` (id varchar(36) primary key,intcol1 INT(32), INDEX(intcol1),charcol1 VARCHAR(128))
INSERT INTO t1 VALUES (uuid(),1804289383,'abc')
SELECT intcol1,charcol1 FROM t1 WHERE id =  'abc'
SET SESSION TRANSACTION READ ONLY
SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE
SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE
-- connectors
/* mysql-connector-j-9.1.0 (Revision: abc) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@sql_mode AS sql_mode
set autocommit=1, sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),session_track_system_variables = CONCAT(@@global.session_track_system_variables,',transaction_isolation'),NAMES utf8mb4
SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_ENGINE_SUBSTITUTION')),time_zone='+00:00',NAMES utf8mb4 COLLATE utf8mb4_general_ci;
SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null, @@lower_case_table_names, CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL
SELECT CONNECTION_ID(), VERSION();
SELECT SLEEP(0) INTO @__MySqlConnector__Sleep;
SELECT GET_LOCK(?, -1)
SELECT TIMEDIFF(NOW(), UTC_TIMESTAMP())
SELECT 1 FROM DUAL
SELECT '' FROM DUAL WHERE 1 = 0
SET CHARACTER SET utf8
SET @a := 1, @@session.sql_mode = 'ANSI'
-- accounts and administration
CREATE USER IF NOT EXISTS 'u'@'%' IDENTIFIED BY 'p', root@localhost
CREATE USER 'exporter'@'%' IDENTIFIED WITH mysql_native_password BY 'p' WITH MAX_USER_CONNECTIONS 3
ALTER USER 'u'@'%' IDENTIFIED BY 'new'
DROP USER IF EXISTS 'u'@'%'
GRANT ALL PRIVILEGES ON *.* TO 'u'@'%' WITH GRANT OPTION
GRANT SELECT, INSERT, REPLICATION SLAVE ON `db`.* TO u@localhost
REVOKE ALL PRIVILEGES, GRANT OPTION FROM u
SHOW GRANTS FOR CURRENT_USER()
SHOW ENGINE INNODB STATUS
SHOW COUNT(*) WARNINGS
SHOW WARNINGS LIMIT 10
SHOW COLLATION WHERE Charset = 'utf8mb4'
SHOW INDEX FROM t FROM d WHERE Key_name = 'PRIMARY'
SHOW CREATE DATABASE d
FLUSH TABLES t FOR EXPORT
ALTER TABLE t DISCARD TABLESPACE
ALTER TABLE t IMPORT TABLESPACE
ALTER TABLE t ADD INDEX i (a, b(10)), DROP INDEX j, ALGORITHM=INPLACE, LOCK=NONE
ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 0 AFTER y, DROP COLUMN z
RENAME TABLE a TO b, c TO d.e
TRUNCATE TABLE t
DESC t
DESCRIBE `s`.`t` col
EXPLAIN SELECT 1
PREPARE s FROM 'SELECT ?'
EXECUTE s USING @a, @b
DEALLOCATE PREPARE s
DO SLEEP(0), 1+1
-- the language
SELECT a, b AS 'x y', t.*, d.t.c FROM d.t AS t WHERE a NOT BETWEEN 1 AND 2 AND b NOT LIKE 'x\_%' ESCAPE '|' OR c IS NOT TRUE
SELECT CAST(a AS UNSIGNED), CONVERT(b, DECIMAL(10,2)), CONVERT(c USING utf8mb4), CAST('x' AS CHAR(3) CHARACTER SET utf8mb4), BINARY 'a', 'a' COLLATE utf8mb4_bin
SELECT DATE_ADD(NOW(), INTERVAL 1 DAY), d + INTERVAL '1:1' MINUTE_SECOND, d - INTERVAL 2 WEEK + INTERVAL 3 HOUR, EXTRACT(YEAR FROM d), DATE '2024-01-01', TIMESTAMPDIFF(SECOND, a, b)
SELECT TRIM(LEADING 'x' FROM a), TRIM(a), SUBSTRING(a FROM 2 FOR 3), SUBSTR(a, 1), POSITION('a' IN b), CHAR(65, 66 USING utf8mb4), IF(a, b, c), LEFT(a, 1), REPLACE(a, 'b', 'c'), MOD(a, 2), a MOD 2
SELECT GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR '; ') FROM t GROUP BY c, d HAVING COUNT(*) > 1 ORDER BY 1 DESC, c LIMIT 5 OFFSET 10
SELECT * FROM a JOIN b USING (x) LEFT OUTER JOIN c ON a.y = c.y RIGHT JOIN d ON c.z = d.z CROSS JOIN e NATURAL JOIN f, (g, h)
(SELECT 1) UNION ALL (SELECT 2) UNION SELECT 3 ORDER BY 1 LIMIT 2
SELECT * FROM t WHERE (a, b) = (1, 2) AND EXISTS (SELECT 1 FROM u WHERE u.x = t.x) AND c IN (SELECT y FROM v)
SELECT * FROM t FOR UPDATE SKIP LOCKED
SELECT * FROM t FOR SHARE NOWAIT
SELECT * FROM t LOCK IN SHARE MODE
INSERT IGNORE INTO t SET a = 1, b = DEFAULT
INSERT INTO t (a, b) VALUES (1, 2) ON DUPLICATE KEY UPDATE b = VALUES(b) + 1
INSERT INTO t () VALUES ()
REPLACE INTO t VALUES (1), (2)
UPDATE LOW_PRIORITY IGNORE t SET a = a + 1, t.b = DEFAULT WHERE c ORDER BY d LIMIT 3
DELETE QUICK FROM t WHERE a = 1 ORDER BY b DESC LIMIT 1
SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, CASE WHEN a THEN b END, NULL, TRUE, .5, 1e3, 0x1F, ~0, -5, +3, !a
SELECT {d '2024-01-01'}, {ts '2024-01-01 00:00:00'}
-- views
CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`root`@`localhost` SQL SECURITY INVOKER VIEW d.v (a, b) AS SELECT 1, 2 WITH LOCAL CHECK OPTION
CREATE VIEW IF NOT EXISTS v AS (SELECT a FROM t UNION SELECT b FROM u) WITH CHECK OPTION
ALTER DEFINER = CURRENT_USER VIEW v AS WITH c AS (SELECT 1 AS a) SELECT * FROM c WITH CASCADED CHECK OPTION
/*!50001 CREATE ALGORITHM=UNDEFINED */ /*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */ /*!50001 VIEW `v` AS select `t`.`a` AS `a` from `t` group by `t`.`a` with rollup */
DROP VIEW IF EXISTS a, d.b CASCADE
SHOW CREATE VIEW d.v
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5), s AS (TABLE r) SELECT r.n, SUM(n) OVER (PARTITION BY n ORDER BY n DESC ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING), RANK() OVER w FROM r LEFT JOIN s ON TRUE WINDOW w AS (ORDER BY n)
SELECT a FROM (SELECT a FROM t LIMIT 3) x WHERE (a, 1) IN (SELECT b, c FROM u) AND NOT EXISTS (SELECT 1) AND a > ALL (SELECT d FROM w) EXCEPT SELECT 2 INTERSECT (SELECT 3 ORDER BY 1 LIMIT 1)
SELECT COUNT(*), COUNT(DISTINCT a, b), MAX(DISTINCT c), GROUP_CONCAT(a, b ORDER BY c DESC, d SEPARATOR '\'\\') FROM t GROUP BY a WITH ROLLUP HAVING GROUPING(a) = 0
VALUES ROW(1, 'a'), ROW(2, 'b') ORDER BY 1 LIMIT 1, 2
