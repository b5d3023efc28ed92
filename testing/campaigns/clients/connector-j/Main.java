// Checks Connector/J: values, prepared statements, result sets, transactions, metadata, connections.
// Each group of checks is a class of its own.
public class Main {

    public static void main(String[] args) throws Exception {
        Values.run();
        ResultSets.run();
        Transactions.run();
        Metadata.run();
        Connections.run();
        Checks.finish();
    }
}
