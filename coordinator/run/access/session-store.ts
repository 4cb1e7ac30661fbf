/** Stores who is signed in (table web_session). Sessions are deleted when they end. */

import { timingSafeEqual } from "node:crypto";
import type { Pool } from "pg";
import {
  type OperatorToken,
  type OperatorTokenStore,
  type Session,
  type SessionStore,
  type SignInLink,
  type SignInLinkStore,
  sessionIdleMs,
} from "#core/access-types";
import { clean } from "../../database/transaction.ts";

/** How precisely a session's last use is stored. */
const noteEveryMs = 60_000;

const mostSaid = 500;
const idleMs = "make_interval(secs => $2::float8 / 1000)";

export function createSessionStore(pool: Pool): SessionStore {
  return {
    async use(sessionHash, { remoteAddress, userAgent }, now) {
      const { rows } = await pool.query<Session & { said: string | null }>(
        `with found as (
           select ${sessionColumns}, said
           from web_session
           where session_hash = $1 and ends_at > $3 and last_used_at > $3::timestamptz - ${idleMs}
         ), noted as (
           update web_session
           set last_used_at = $3, remote_address = $4, user_agent = $5
           where session_id in (select "sessionId" from found)
             and last_used_at <= $3::timestamptz - make_interval(secs => $6::float8 / 1000)
         )
         select * from found`,
        [sessionHash, sessionIdleMs, now, remoteAddress, clean(userAgent.slice(0, 300)), noteEveryMs],
      );
      return rows[0] ?? null;
    },

    async list(now, name) {
      const { rows } = await pool.query<Session>(
        `select ${sessionColumns}
         from web_session
         where ends_at > $1
           and last_used_at > $1::timestamptz - ${idleMs}
           and ($3::text is null or name = $3)
         order by last_used_at desc, session_id desc
         limit 500`,
        [now, sessionIdleMs, name ?? null],
      );
      return rows;
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

const sessionColumns = `session_id as "sessionId", name, role, crawlers, issued_by as "issuedBy",
  started_at as "startedAt", last_used_at as "lastUsedAt", ends_at as "endsAt", remote_address as "remoteAddress",
  user_agent as "userAgent"`;

/** Links are deleted this many days after their end. The audit log keeps who got one. */
const keptDays = 30;

export function createSignInLinkStore(pool: Pool): SignInLinkStore {
  return {
    async issue({ linkHash, name, role, crawlers, issuedBy, issuedAt, expiresAt }) {
      const { rows } = await pool.query<{ link_id: number }>(
        `with forgotten as (
           delete from sign_in_link where expires_at < $6::timestamptz - make_interval(days => $8)
         )
         insert into sign_in_link (link_hash, name, role, crawlers, issued_by, issued_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         returning link_id`,
        [linkHash, name, role, crawlers, clean(issuedBy), issuedAt, expiresAt, keptDays],
      );
      return rows[0]?.link_id ?? 0;
    },

    async find(linkHash, now) {
      const { rows } = await pool.query<SignInLink>(
        `select ${linkColumns("$2")} from sign_in_link where link_hash = $1`,
        [linkHash, now],
      );
      return rows[0] ?? null;
    },

    async unknownCrawlers(names, now) {
      const { rows } = await pool.query<{ name: string }>(
        `select given.name
         from unnest($1::text[]) as given (name)
         where not exists (select from crawler c where c.name = given.name)
           and not exists (
             select from invitation i
             where i.name = given.name and i.revoked_at is null and i.expires_at > $2
           )`,
        [names, now],
      );
      return rows.map(({ name }) => name);
    },

    async open(now) {
      const { rows } = await pool.query<SignInLink>(
        `select ${linkColumns("$1")}
         from sign_in_link
         where used_at is null and revoked_at is null and expires_at > $1
         order by link_id desc
         limit 500`,
        [now],
      );
      return rows;
    },

    async revoke(linkId, now) {
      const { rows } = await pool.query<SignInLink>(
        `update sign_in_link
         set revoked_at = $2
         where link_id = $1 and used_at is null and revoked_at is null and expires_at > $2
         returning ${linkColumns("$2")}`,
        [linkId, now],
      );
      return rows[0] ?? null;
    },

    async redeem(linkHash, { sessionHash, endsAt, remoteAddress, userAgent }, now) {
      const { rows } = await pool.query<Session>(
        `with used as (
           update sign_in_link
           set used_at = $2
           where link_hash = $1 and used_at is null and revoked_at is null and expires_at > $2
           returning name, role, crawlers, issued_by
         ), over as (
           delete from web_session where ends_at < $2
         )
         insert into web_session (session_hash, name, role, crawlers, issued_by, started_at, last_used_at, ends_at,
           remote_address, user_agent)
         select $3, name, role, crawlers, issued_by, $2, $2, $4, $5, $6 from used
         returning ${sessionColumns}`,
        [linkHash, now, sessionHash, endsAt, remoteAddress, clean(userAgent.slice(0, 300))],
      );
      return rows[0] ?? null;
    },
  };
}

const linkColumns = (now: string) => `link_id as "linkId", name, role, crawlers, issued_by as "issuedBy",
  issued_at as "issuedAt", expires_at as "expiresAt",
  case when used_at is not null then 'used' when revoked_at is not null then 'revoked'
    when expires_at <= ${now}::timestamptz then 'expired' else 'open' end as state`;

export function createOperatorTokenStore(pool: Pool): OperatorTokenStore {
  return {
    async create({ name, tokenHash, scopes, createdAt, expiresAt }) {
      const { rowCount } = await pool.query(
        `insert into operator_token (name, token_hash, scopes, created_at, expires_at)
         values ($1, $2, $3, $4, $5)
         on conflict (name) do nothing`,
        [name, tokenHash, scopes, createdAt, expiresAt],
      );
      return rowCount === 1;
    },

    async list() {
      const { rows } = await pool.query<OperatorToken>(`select ${columns} from operator_token order by name`);
      return rows;
    },

    async revoke(name, now) {
      const { rowCount } = await pool.query(
        "update operator_token set revoked_at = $2 where name = $1 and revoked_at is null",
        [name, now],
      );
      return rowCount === 1;
    },

    async use(tokenHash, now) {
      const { rows } = await pool.query<OperatorToken & { tokenHash: string }>(
        `update operator_token
         set last_used_at = $2
         where token_hash = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
         returning ${columns}, token_hash as "tokenHash"`,
        [tokenHash, now],
      );
      if (!rows[0]) return null;
      const { tokenHash: kept, ...token } = rows[0];
      // The index compares hashes, which reveals nothing. The final comparison takes constant time.
      return timingSafeEqual(Buffer.from(kept), Buffer.from(tokenHash)) ? token : null;
    },
  };
}

const columns = `name, scopes, created_at as "createdAt", expires_at as "expiresAt", last_used_at as "lastUsedAt",
  revoked_at as "revokedAt"`;
