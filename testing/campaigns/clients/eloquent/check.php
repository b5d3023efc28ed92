<?php
// The checks of the applications for PHP: each prints `ok` or `FAIL`; the exit code says whether all passed.
// A check is a function that throws when it fails; same() compares and throws.
error_reporting(E_ALL & ~E_DEPRECATED);
$server = [
    "host" => getenv("CLIENT_HOST"),
    "port" => (int) getenv("CLIENT_PORT"),
    "user" => getenv("CLIENT_USER"),
    "password" => getenv("CLIENT_PASSWORD") ?: "",
    "database" => getenv("CLIENT_DATABASE"),
];
$failed = 0;
function check(string $name, callable $body): void
{
    global $failed;
    try {
        $body();
        echo "ok   $name\n";
    } catch (Throwable $e) {
        $failed++;
        echo "FAIL $name: ",
            substr(preg_replace("/\s+/", " ", $e->getMessage()), 0, 500),
            " (line ",
            $e->getLine(),
            ")\n";
    }
}
function same($expected, $got, string $what = ""): void
{
    if ($expected !== $got) {
        throw new Exception("$what expected " . json_encode($expected) . ", got " . json_encode($got));
    }
}
function fails($code, callable $body): void
{
    try {
        $body();
    } catch (Throwable $e) {
        $got = $e instanceof PDOException ? $e->errorInfo[1] : $e->getCode();
        same($code, $got, $e->getMessage());
        return;
    }
    throw new Exception("error $code expected");
}
