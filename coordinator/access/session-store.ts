/** Table web_session: who is signed in. A session that is ended is deleted. */
import type { Pool } from "pg";
import { type Session, type SessionStore, sessionIdleMs } from "#core/access-types";
import type { Role } from "#core/actor";
import { clean } from "../database/transaction.ts";

/** How exactly it is kept when a session was last used. */
const noteEveryMs = 60_000;
const mostSaid = 500;
const idleMs = "make_interval(secs => $2::float8 / 1000)";

export function createSessionStore(pool: Pool): SessionStore {
  return {
    async use(sessionHash, { remoteAddress, userAgent }, now) {
      const { rows } = await pool.query<SessionRow & { said: string | null }>(
        `with found as (
           select ${sessionColumns}, said
           from web_session
           where session_hash = $1 and ends_at > $3 and last_used_at > $3::timestamptz - ${idleMs}
         ), noted as (
           update web_session
           set last_used_at = $3, remote_address = $4, user_agent = $5
           where session_id in (select session_id from found)
             and last_used_at <= $3::timestamptz - make_interval(secs => $6::float8 / 1000)
         )
         select * from found`,
        [sessionHash, sessionIdleMs, now, remoteAddress, clean(userAgent.slice(0, 300)), noteEveryMs],
      );
      const [row] = rows;
      return row ? { ...sessionOf(row), said: row.said } : null;
    },

    async list(now, name) {
      const { rows } = await pool.query<SessionRow>(
        `select ${sessionColumns}
         from web_session
         where ends_at > $1
           and last_used_at > $1::timestamptz - ${idleMs}
           and ($3::text is null or name = $3)
         order by last_used_at desc, session_id desc
         limit 500`,
        [now, sessionIdleMs, name ?? null],
      );
      return rows.map(sessionOf);
    },

    async end(which) {
      const { rowCount } =
        "sessionId" in which
          ? await pool.query("delete from web_session where session_id = $1", [which.sessionId])
          : await pool.query("delete from web_session where name = $1 and session_id <> $2", [
              which.name,
              which.exceptId,
            ]);
      return rowCount ?? 0;
    },

    async say(sessionId, words) {
      await pool.query("update web_session set said = $2 where session_id = $1", [
        sessionId,
        clean(words.slice(0, mostSaid)),
      ]);
    },

    async takeSaid(sessionId) {
      const { rows } = await pool.query<{ said: string | null }>(
        `with said as (select session_id, said from web_session where session_id = $1 for update)
         update web_session s
         set said = null
         from said
         where s.session_id = said.session_id
         returning said.said`,
        [sessionId],
      );
      return rows[0]?.said ?? null;
    },
  };
}

export const sessionColumns =
  "session_id, name, role, crawlers, issued_by, started_at, last_used_at, ends_at, remote_address, user_agent";

export interface SessionRow {
  session_id: number;
  name: string;
  role: Role;
  crawlers: string[];
  issued_by: string;
  started_at: Date;
  last_used_at: Date;
  ends_at: Date;
  remote_address: string | null;
  user_agent: string;
}

export function sessionOf(row: SessionRow): Session {
  return {
    sessionId: row.session_id,
    name: row.name,
    role: row.role,
    crawlers: row.crawlers,
    issuedBy: row.issued_by,
    startedAt: row.started_at,
    lastUsedAt: row.last_used_at,
    endsAt: row.ends_at,
    remoteAddress: row.remote_address,
    userAgent: row.user_agent,
  };
}
