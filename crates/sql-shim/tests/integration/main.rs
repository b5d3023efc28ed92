//! The server from outside: sessions over sockets, and the program itself. One program of tests: everything
//! above a connection is generic over what it answers to, and each program would compile the executor again.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod alter_beside_others;
mod backup;
mod column_metadata;
mod com_counters;
mod compression;
mod data_locks;
mod definitions_again;
mod engine_settings;
mod forms_of_conditions;
mod functional_keys;
mod golden;
mod handler_counters;
mod handlers;
mod hostile_statements;
mod index_attributes;
mod innodb_status;
mod latin1_clients;
mod load_data;
mod metrics_endpoint;
mod monitoring_tables;
mod multi_table_changes;
mod named_locks;
#[cfg(feature = "object-storage")]
mod object_storage;
#[cfg(feature = "opensrv")]
mod opensrv;
mod page_protection;
mod panics;
mod password_rules;
mod prepared_statements;
mod privileges;
mod program;
mod protocol;
mod query_attributes;
mod refused_starts;
mod roles;
mod session_tracking;
mod slow_clients;
mod statement_depth;
mod statements;
mod stock_clients;
mod storage_trouble;
mod support;
mod table_locks;
mod tablespaces;
mod temporary_tables;
mod tls;
mod told_to_clients;
mod upsert_conflicts;
mod variables;
mod views;
mod virtual_columns;
mod where_time_goes;
mod xa;
mod xml_functions;
