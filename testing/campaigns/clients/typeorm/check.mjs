// The checks of the applications for Node: each prints `ok` or `FAIL`, and the exit code says whether all passed.
// A check is a function that throws (an assertion of node:assert, or the client's own error) when it fails.
export const server = {
  host: process.env.CLIENT_HOST,
  port: Number(process.env.CLIENT_PORT),
  user: process.env.CLIENT_USER,
  password: process.env.CLIENT_PASSWORD ?? "",
  database: process.env.CLIENT_DATABASE,
};
let failed = 0;
export async function check(name, body) {
  try {
    await body();
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    const why = String(error?.sqlMessage ?? error?.message ?? error)
      .replace(/\s+/g, " ")
      .slice(0, 400);
    const sql = error?.sql ? ` [${String(error.sql).replace(/\s+/g, " ").slice(0, 300)}]` : "";
    console.log(`FAIL ${name}: ${why}${sql}`);
  }
}
export function finish() {
  process.exit(failed === 0 ? 0 : 1);
}
