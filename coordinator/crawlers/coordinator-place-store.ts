/** Table coordinator_place: where partners reach the coordinator and what it crawls, as it said itself when it last started. */
import type { Pool } from "pg";

export interface CoordinatorPlace {
  /** http:// or https://. */
  readonly webUrl: string;
  /** SHA-256 of the SubjectPublicKeyInfo of its certificate, base64url; null: it has none of its own. */
  readonly certificatePin: string | null;
  /** `webUrl` was set: a proxy with another certificate may stand there. */
  readonly hasPublicUrl?: boolean;
  /** Its own (`domainSets` of its settings), as text; left out: none. */
  readonly domainSets?: readonly string[];
}

export async function stateCoordinatorPlace(pool: Pool, place: CoordinatorPlace, now: Date): Promise<void> {
  await pool.query(
    `insert into coordinator_place (web_url, certificate_pin, has_public_url, domain_sets, stated_at)
     values ($1, $2, $3, $4, $5)
     on conflict (only_one) do update
       set web_url = excluded.web_url, certificate_pin = excluded.certificate_pin,
           has_public_url = excluded.has_public_url, domain_sets = excluded.domain_sets, stated_at = excluded.stated_at`,
    [place.webUrl, place.certificatePin, place.hasPublicUrl ?? false, place.domainSets ?? [], now],
  );
}

/** Null: no coordinator has started here yet. */
export async function readCoordinatorPlace(pool: Pool): Promise<CoordinatorPlace | null> {
  const { rows } = await pool.query<{
    web_url: string;
    certificate_pin: string | null;
    has_public_url: boolean;
    domain_sets: string[];
  }>("select web_url, certificate_pin, has_public_url, domain_sets from coordinator_place");
  const [row] = rows;
  if (!row) return null;
  return {
    webUrl: row.web_url,
    certificatePin: row.certificate_pin,
    hasPublicUrl: row.has_public_url,
    domainSets: row.domain_sets,
  };
}
