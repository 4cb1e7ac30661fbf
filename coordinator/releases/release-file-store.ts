/**
 * What the coordinator serves of releases. Only what somebody is to have: a release that was revoked, or whose
 * offer was taken back, is not there, whoever asks for its digest.
 */
import type { Pool } from "pg";
import { storedEnvelope } from "./key-store.ts";
import type { ReleaseFileStore } from "./release-ports.ts";

const released = `
  r.digest = $1
  and r.stage <> 'none'
  and not r.digest = any(coalesce(
    (select digests from release_revocation order by sequence desc limit 1), '{}'
  ))`;

export function createReleaseFileStore(pool: Pool): ReleaseFileStore {
  return {
    async bundle(digest) {
      const { rows } = await pool.query<{ bundle: Buffer }>(
        `select b.bundle
         from release_bundle b
         where b.digest = $1 and exists (select from release r where ${released})`,
        [digest],
      );
      return rows[0]?.bundle ?? null;
    },

    async manifest(digest) {
      const { rows } = await pool.query<{ signed: string }>(
        `select r.signed from release r where ${released} order by r.sequence desc limit 1`,
        [digest],
      );
      return rows[0] ? storedEnvelope(rows[0].signed) : null;
    },
  };
}
