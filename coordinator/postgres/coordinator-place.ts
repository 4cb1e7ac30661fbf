/** Table coordinator_place: where partners reach the coordinator, as it said itself when it last started. */
import type { Pool } from "pg";

export interface CoordinatorPlace {
  /** http:// or https://. */
  readonly webUrl: string;
  /** SHA-256 of the SubjectPublicKeyInfo of its certificate, base64url; null: it has none of its own. */
  readonly certificatePin: string | null;
}

export async function stateCoordinatorPlace(pool: Pool, place: CoordinatorPlace, now: Date): Promise<void> {
  await pool.query(
    `insert into coordinator_place (web_url, certificate_pin, stated_at)
     values ($1, $2, $3)
     on conflict (only_one) do update
       set web_url = excluded.web_url, certificate_pin = excluded.certificate_pin, stated_at = excluded.stated_at`,
    [place.webUrl, place.certificatePin, now],
  );
}

/** Null: no coordinator has started here yet. */
export async function readCoordinatorPlace(pool: Pool): Promise<CoordinatorPlace | null> {
  const { rows } = await pool.query<{ web_url: string; certificate_pin: string | null }>(
    "select web_url, certificate_pin from coordinator_place",
  );
  return rows[0] ? { webUrl: rows[0].web_url, certificatePin: rows[0].certificate_pin } : null;
}
