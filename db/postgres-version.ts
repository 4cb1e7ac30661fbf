/** Which Postgres a database is on, for what differs between its versions. */
import type { Pool } from "pg";

/** The server's major version, such as 15. */
export async function postgresVersion(pool: Pick<Pool, "query">): Promise<number> {
  const answer = await pool.query<{ server_version_num: string }>("show server_version_num");
  return Math.trunc(Number(answer.rows[0]!.server_version_num) / 10_000);
}
