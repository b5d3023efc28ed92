//! SET GLOBAL leaves its thread to others while the engine acts on the variable.

use super::*;

#[test]
fn a_variable_that_takes_its_time_stops_nobody_else() {
    let mut fixture = Fixture::new("set-global");
    let (tell, told) = std::sync::mpsc::channel();
    let told = parking_lot::Mutex::new(told);
    fixture.server.variables.on_change(
        "innodb_doublewrite",
        Box::new(move |_| {
            let heard = told.lock().recv_timeout(Duration::from_secs(10));
            heard.map_err(|_| SqlError::new(1105, b"HY000", "its thread did nothing else".to_owned()))
        }),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut sink = Sink::default();
    // Another connection of the one thread.
    runtime.spawn(async move { tell.send(()).unwrap() });
    runtime.block_on(fixture.session.query(b"SET GLOBAL innodb_doublewrite = 'OFF'", &mut sink)).unwrap();
    assert_eq!(sink.error, None);
    assert_eq!(fixture.server.variables.text("innodb_doublewrite"), "OFF");
}
