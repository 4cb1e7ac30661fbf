/** A signed-in user: a session in the database and its cookie. */
import type { BrowserContextOptions } from "playwright-core";
import { createOperatorTokenStore, createSignInLinkStore } from "#coordinator/run/access/session-store";
import { sessionCookieName } from "#coordinator/web/access";
import { randomSecrets } from "#coordinator/web/secrets";
import { formTokenOf } from "#coordinator/web/session-access";
import type { Role, Scope } from "#core/actor";
import type { Database } from "#db/server-database";
import { worldNow } from "./seed-world.ts";

export interface SignedIn {
  /** For `inject` and `fetch`: the cookie and origin as our pages send them. */
  readonly headers: { readonly cookie: string; readonly "sec-fetch-site": "same-origin" };
  /** The field form-token of this session's forms. */
  readonly formToken: string;
  /** For `browser.newContext({ storageState: … })` with the server's address. */
  storageState(base: string): Exclude<BrowserContextOptions["storageState"], string | undefined>;
}

export interface SignInOptions {
  readonly name?: string;
  readonly crawlers?: readonly string[];
  /** By the server's clock. */
  readonly now?: Date;
}

const names = { operator: "anna", staff: "ben", partner: "chris" } as const;

/** `const operator = await signIn(database, "operator"); app.inject({ url, headers: operator.headers })` */
export async function signIn(database: Database, role: Role, options: SignInOptions = {}): Promise<SignedIn> {
  const { name = names[role], crawlers = role === "partner" ? ["athens"] : [], now = worldNow } = options;
  const links = createSignInLinkStore(database.pool);
  const [link, session] = [randomSecrets.make(), randomSecrets.make("ncs_")];
  const expiresAt = new Date(now.getTime() + 60_000);
  const person = { name, role, crawlers };
  await links.issue({ ...person, linkHash: link.hash, issuedBy: "a test", issuedAt: now, expiresAt });
  const endsAt = new Date(now.getTime() + 86_400_000);
  const whence = { remoteAddress: "127.0.0.1", userAgent: "a test" };
  await links.redeem(link.hash, { ...whence, sessionHash: session.hash, endsAt }, now);
  return signedInAs(session.secret);
}

function signedInAs(secret: string): SignedIn {
  const name = sessionCookieName(false);
  const cookie = { name, value: secret, path: "/", expires: -1, httpOnly: true, secure: false } as const;
  return {
    headers: { cookie: `${name}=${secret}`, "sec-fetch-site": "same-origin" },
    formToken: formTokenOf(secret),
    storageState: (base) => ({
      cookies: [{ ...cookie, domain: new URL(base).hostname, sameSite: "Lax" }],
      origins: [],
    }),
  };
}

/** A program's token as a header: `app.inject({ url, headers: await bearer(database, ["read"]) })` */
export async function bearer(
  { pool }: Pick<Database, "pool">,
  scopes: readonly Scope[],
  options: { readonly name?: string; readonly expiresAt?: Date | null } = {},
): Promise<{ readonly authorization: string }> {
  const { secret, hash: tokenHash } = randomSecrets.make("nco_");
  const { name = `t${tokenHash.slice(0, 8)}`, expiresAt = null } = options;
  await createOperatorTokenStore(pool).create({ name, tokenHash, scopes, createdAt: worldNow, expiresAt });
  return { authorization: `Bearer ${secret}` };
}

/** For `inject`: a form submitted by a signed-in user. */
export const formBy = (by: SignedIn, url: string, fields: Record<string, string>) => ({
  ...{ method: "POST" as const, url },
  headers: { ...by.headers, "content-type": "application/x-www-form-urlencoded" },
  payload: new URLSearchParams({ ...fields, "form-token": by.formToken }).toString(),
});
