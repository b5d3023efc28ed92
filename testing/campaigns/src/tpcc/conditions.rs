//! The twelve consistency conditions (clause 3.3.2), each as one query for what contradicts it.

use super::load::{DISTRICTS, Scale};
use anyhow::{Context, Result, ensure};
use mysql::Conn;
use mysql::prelude::Queryable;

/// A condition.
struct Condition {
    number: u8,
    says: &'static str,
    /// How many rows contradict it.
    query: &'static str,
    /// A change that contradicts it.
    breaks: &'static str,
}

const CONDITIONS: [Condition; 12] = [
    Condition {
        number: 1,
        says: "what a warehouse took in is what its districts did",
        query: "SELECT COUNT(*) FROM warehouse JOIN (SELECT d_w_id, SUM(d_ytd) AS taken FROM district \
                GROUP BY d_w_id) d ON d_w_id = w_id WHERE w_ytd <> taken",
        breaks: "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1",
    },
    Condition {
        number: 2,
        says: "the next order of a district follows its last one, and its last new one",
        query: "SELECT COUNT(*) FROM district \
                LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_order FROM orders \
                GROUP BY o_w_id, o_d_id) o ON o_w_id = d_w_id AND o_d_id = d_id \
                LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new FROM new_order \
                GROUP BY no_w_id, no_d_id) n ON no_w_id = d_w_id AND no_d_id = d_id \
                WHERE d_next_o_id - 1 <> last_order OR last_order IS NULL OR last_new <> last_order",
        breaks: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
    },
    Condition {
        number: 3,
        says: "new orders of a district have no gaps",
        query: "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 AS numbers, COUNT(*) AS found \
                FROM new_order GROUP BY no_w_id, no_d_id) n WHERE numbers <> found",
        breaks: "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 AND no_o_id = (SELECT last FROM \
                 (SELECT MAX(no_o_id) - 1 AS last FROM new_order WHERE no_w_id = 1 AND no_d_id = 2) m)",
    },
    Condition {
        number: 4,
        says: "a district has as many order lines as its orders count",
        query: "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS counted FROM orders \
                GROUP BY o_w_id, o_d_id) o LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found \
                FROM order_line GROUP BY ol_w_id, ol_d_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id \
                WHERE found IS NULL OR counted <> found",
        breaks: "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 4 AND ol_o_id = 1 AND ol_number = 2",
    },
    Condition {
        number: 5,
        says: "orders without a carrier are the new ones",
        query: "SELECT COUNT(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id \
                AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
        breaks: "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
    },
    Condition {
        number: 6,
        says: "an order has as many lines as it counts",
        query: "SELECT COUNT(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found \
                FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE found IS NULL OR o_ol_cnt <> found",
        breaks: "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 5 AND o_id = 7",
    },
    Condition {
        number: 7,
        says: "lines have a time of delivery when their order has a carrier",
        query: "SELECT COUNT(*) FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id \
                AND ol_o_id = o_id WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
        breaks: "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 6 \
                 AND ol_o_id = 1 AND ol_number = 1",
    },
    Condition {
        number: 8,
        says: "what a warehouse took in is its history",
        query: "SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history \
                GROUP BY h_w_id) h ON h_w_id = w_id WHERE paid IS NULL OR w_ytd <> paid",
        breaks: "INSERT INTO history VALUES (1, 1, 1, 1, 1, NOW(), 1, 'wrong')",
    },
    Condition {
        number: 9,
        says: "what a district took in is its history",
        query: "SELECT COUNT(*) FROM district LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid \
                FROM history GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id \
                WHERE paid IS NULL OR d_ytd <> paid",
        breaks: "UPDATE district SET d_ytd = d_ytd - 5 WHERE d_w_id = 1 AND d_id = 8",
    },
    Condition {
        number: 10,
        says: "a customer's balance is what was delivered less what was paid",
        query: "SELECT COUNT(*) FROM customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders \
                JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
                ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history \
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) h \
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)",
        breaks: "UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 9 AND c_id = 11",
    },
    Condition {
        number: 11,
        says: "orders that are not new any more have been delivered",
        query: "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, COUNT(*) AS made, COUNT(o_carrier_id) AS gone \
                FROM orders GROUP BY o_w_id, o_d_id) o LEFT JOIN (SELECT no_w_id, no_d_id, \
                COUNT(*) AS waiting FROM new_order GROUP BY no_w_id, no_d_id) n \
                ON no_w_id = o_w_id AND no_d_id = o_d_id WHERE made - COALESCE(waiting, 0) <> gone",
        breaks: "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 10 ORDER BY no_o_id DESC LIMIT 1",
    },
    Condition {
        number: 12,
        says: "a customer's balance and payments are what was delivered",
        query: "SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, \
                SUM(ol_amount) AS delivered FROM orders JOIN order_line ON ol_w_id = o_w_id \
                AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)",
        breaks: "UPDATE customer SET c_ytd_payment = 0 WHERE c_w_id = 1 AND c_d_id = 7 AND c_id = 2",
    },
];

fn contradictions(connection: &mut Conn, condition: &Condition) -> Result<u64> {
    let number = condition.number;
    let found: Option<u64> =
        connection.query_first(condition.query).with_context(|| format!("condition {number}"))?;
    found.with_context(|| format!("condition {number} has no count"))
}

/// Requires all twelve.
pub fn check(connection: &mut Conn) -> Result<()> {
    for condition in &CONDITIONS {
        let found = contradictions(connection, condition)?;
        ensure!(
            found == 0,
            "condition {} ({}) is contradicted {found} times",
            condition.number,
            condition.says
        );
    }
    Ok(())
}

/// What the standard says of condition 11 before any load: 2100 orders of each district are delivered.
pub fn check_as_loaded(connection: &mut Conn, scale: Scale) -> Result<()> {
    let count = |connection: &mut Conn, table: &str| -> Result<usize> {
        let found: Option<usize> = connection.query_first(format!("SELECT COUNT(*) FROM {table}"))?;
        found.with_context(|| format!("no count of {table}"))
    };
    let districts = DISTRICTS * scale.warehouses;
    let (orders, waiting) = (count(connection, "orders")?, count(connection, "new_order")?);
    ensure!(
        orders - waiting == scale.delivered * districts,
        "{orders} orders and {waiting} new ones after loading"
    );
    Ok(())
}

/// Breaks each condition in a transaction that is rolled back; it must notice.
pub fn break_each(connection: &mut Conn) -> Result<()> {
    for condition in &CONDITIONS {
        connection.query_drop("BEGIN")?;
        connection
            .query_drop(condition.breaks)
            .with_context(|| format!("breaking condition {}", condition.number))?;
        let found = contradictions(connection, condition)?;
        connection.query_drop("ROLLBACK")?;
        ensure!(found > 0, "condition {} holds where it must not", condition.number);
    }
    check(connection).context("after all was rolled back")
}
