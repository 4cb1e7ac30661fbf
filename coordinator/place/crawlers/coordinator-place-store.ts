import type { Pool } from "pg";
import { canParseUrl } from "#core/ip/url-host";
import { mostCoordinators } from "#protocol/coordinator-messages";

/** Addresses not confirmed for a day are forgotten. */
export const addressHours = 24;

/** Addresses at which crawlers reach this database's coordinators, most recently active first. */
export async function coordinatorAddresses(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ crawler_url: string }>(
    `select crawler_url
     from coordinator_address
     where seen_at >= now() - interval '${addressHours} hours'
     order by seen_at desc, crawler_url
     limit ${mostCoordinators}`,
  );
  return rows.map((row) => row.crawler_url);
}

/** The URL of the crawlers' socket next to a page's URL. */
export function socketUrl(text: string): string {
  if (!canParseUrl(text)) return text;
  const url = new URL(text);
  if (url.pathname === "/") url.pathname = "/crawler";
  return url.href.replace(/^http/, "ws");
}

const usualBackupHours = 48;

interface CoordinatorPlace {
  readonly webUrl: string;
  /** SHA-256 of the certificate's SubjectPublicKeyInfo in base64url. Null if the coordinator has no certificate of its own. */
  readonly certificatePin: string | null;
  /** True if `webUrl` is configured, so a proxy with another certificate may answer there. */
  readonly hasPublicUrl?: boolean;
  /** Its configured `domainSets`, as text. None if omitted. */
  readonly domainSets?: readonly string[];
  /** Hours without a backup before a warning (`backup.warnAfterHours`). Default: 48. `null` means never. */
  readonly backupWarnHours?: number | null;
}

export async function stateCoordinatorPlace(pool: Pool, place: CoordinatorPlace, now: Date): Promise<void> {
  await pool.query(
    `insert into coordinator_place (web_url, certificate_pin, has_public_url, domain_sets, backup_warn_hours, stated_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (only_one) do update
       set web_url = excluded.web_url, certificate_pin = excluded.certificate_pin,
           has_public_url = excluded.has_public_url, domain_sets = excluded.domain_sets,
           backup_warn_hours = excluded.backup_warn_hours, stated_at = excluded.stated_at`,
    [
      ...[place.webUrl, place.certificatePin, place.hasPublicUrl ?? false, place.domainSets ?? []],
      place.backupWarnHours === undefined ? usualBackupHours : place.backupWarnHours,
      now,
    ],
  );
}

/** Returns null if no coordinator has started here yet. */
export async function readCoordinatorPlace(pool: Pool): Promise<CoordinatorPlace | null> {
  const { rows } = await pool.query<CoordinatorPlace>(
    `select web_url as "webUrl", certificate_pin as "certificatePin", has_public_url as "hasPublicUrl",
       domain_sets as "domainSets"
     from coordinator_place`,
  );
  return rows[0] ?? null;
}
