//! The nine tables, with the keys of the standard and two secondary indexes that its transactions need.

use anyhow::Result;
use mysql::Conn;
use mysql::prelude::Queryable;

const TABLES: [&str; 9] = [
    "CREATE TABLE warehouse (w_id INT NOT NULL PRIMARY KEY, w_name VARCHAR(10), w_street_1 VARCHAR(20), \
     w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2))",
    "CREATE TABLE district (d_w_id INT NOT NULL, d_id TINYINT NOT NULL, d_name VARCHAR(10), \
     d_street_1 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), \
     d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id), \
     CONSTRAINT of_warehouse FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id))",
    "CREATE TABLE customer (c_w_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_id INT NOT NULL, \
     c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16), c_street_1 VARCHAR(20), c_city VARCHAR(20), \
     c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), \
     c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), \
     c_ytd_payment DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), \
     PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first))",
    "CREATE TABLE history (h_c_id INT, h_c_d_id TINYINT, h_c_w_id INT, h_d_id TINYINT, h_w_id INT, \
     h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24))",
    "CREATE TABLE orders (o_w_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_id INT NOT NULL, o_c_id INT, \
     o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, \
     PRIMARY KEY (o_w_id, o_d_id, o_id), KEY by_customer (o_w_id, o_d_id, o_c_id, o_id))",
    "CREATE TABLE new_order (no_w_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_o_id INT NOT NULL, \
     PRIMARY KEY (no_w_id, no_d_id, no_o_id), \
     CONSTRAINT of_order FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id))",
    "CREATE TABLE item (i_id INT NOT NULL PRIMARY KEY, i_im_id INT, i_name VARCHAR(24), \
     i_price DECIMAL(5,2), i_data VARCHAR(50))",
    "CREATE TABLE stock (s_w_id INT NOT NULL, s_i_id INT NOT NULL, s_quantity SMALLINT, s_dist CHAR(24), \
     s_ytd DECIMAL(8,0), s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50), \
     PRIMARY KEY (s_w_id, s_i_id))",
    "CREATE TABLE order_line (ol_w_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_o_id INT NOT NULL, \
     ol_number TINYINT NOT NULL, ol_i_id INT, ol_supply_w_id INT, ol_delivery_d DATETIME, \
     ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
     PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
];

/// Makes the database, empty, and enters it.
pub fn create(connection: &mut Conn, database: &str) -> Result<()> {
    connection.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
    connection.query_drop(format!("CREATE DATABASE {database}"))?;
    connection.query_drop(format!("USE {database}"))?;
    for table in TABLES {
        connection.query_drop(format!("{table} ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"))?;
    }
    Ok(())
}
