/**
 * Who may do what. People have a *role*; a token or a route has *scopes*, and a role is a set of scopes. A partner has no
 * scope: it sees and controls only the crawlers that it hosts.
 */
export const roles = ["partner", "staff", "operator"] as const;

export type Role = (typeof roles)[number];

/**
 * `read`: the crawl, the index, who crawls what and why. `url-write`: submit URLs. `site-recrawl`: refetch pages of sites
 * that name the token in DNS, as partners do for their own servers (included in `url-write`). `fleet-*`: keys, invitations,
 * budgets, incidents, trust. `registry-write`: plan, apply, roll back. `policy-write`: the coordinator's settings.
 * `access-write`: tokens and other people's sign-in. `audit-read`: who changed what. `metrics-read`: /metrics.
 */
export const scopes = [
  "read",
  "url-write",
  "site-recrawl",
  "metrics-read",
  "fleet-read",
  "fleet-write",
  "registry-write",
  "policy-write",
  "audit-read",
  "access-write",
] as const;

export type Scope = (typeof scopes)[number];

export const scopesOf: Readonly<Record<Role, readonly Scope[]>> = {
  partner: [],
  staff: ["read", "url-write"],
  operator: scopes,
};

export interface Actor {
  /** The name in the audit log: `anna`, `token dashboard`, or `anybody` when nobody has signed in. */
  readonly name: string;
  /** `program` if a token was sent, `anybody` if nothing was. */
  readonly role: Role | "program" | "anybody";
  readonly scopes: readonly Scope[];
  /** Names of the crawlers that a partner hosts. */
  readonly crawlers: readonly string[];
}

/** The actor of a request without sign-in. `mayRead` is true where pages are public. */
export function anybody(mayRead: boolean): Actor {
  return { name: "anybody", role: "anybody", scopes: mayRead ? ["read", "metrics-read"] : [], crawlers: [] };
}

/** With `partnersToo`, a partner may do it to its own crawlers; `crawler` is the one concerned. */
export function mayDo(
  actor: Actor,
  scope: Scope | null,
  own: { readonly crawler: string; readonly partnersToo: boolean } | null = null,
): boolean {
  if (scope === null || actor.scopes.includes(scope)) return true;
  if (scope === "site-recrawl" && actor.scopes.includes("url-write")) return true;
  return own?.partnersToo === true && actor.role === "partner" && actor.crawlers.includes(own.crawler);
}

/** Nobody may grant what they may not do themselves. Returns a sentence that names the missing scopes, or null. */
export function cannotGive(actor: Actor, given: readonly Scope[]): string | null {
  const missing = given.filter((scope) => !actor.scopes.includes(scope));
  return missing.length === 0
    ? null
    : `${actor.name} cannot grant scopes that it does not have: ${missing.join(", ")}.`;
}

/** A partner may do to its own crawlers what `fleet-write` allows for all. */
export function scopesOfPerson({ role }: Pick<Person, "role">): readonly Scope[] {
  return role === "partner" ? ["fleet-write"] : scopesOf[role];
}

export interface Person {
  readonly name: string;
  readonly role: Role;
  /** Names of the crawlers that a partner hosts; empty for the other roles. */
  readonly crawlers: readonly string[];
}
