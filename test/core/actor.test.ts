/** Who may do what: scopes, and what partners may do with their own crawlers. */
import { expect, it } from "vitest";
import { type Actor, cannotGive, mayDo, type Scope } from "#core/actor";

const actor = (
  role: Actor["role"],
  scopes: readonly Scope[] = [],
  crawlers: readonly string[] = [],
): Actor => ({
  ...{ name: "ben", role, scopes, crawlers },
});
const athens = { crawler: "athens", partnersToo: true };

it.each<[string, Actor, Scope | null, typeof athens | null, boolean]>([
  ["anybody what needs no scope", actor("anybody"), null, null, true],
  ["a token what its scopes say", actor("program", ["fleet-write"]), "fleet-write", null, true],
  ["nobody what another scope says", actor("staff", ["read"]), "fleet-write", null, false],
  ["who may hand in URLs what needs less", actor("program", ["url-write"]), "site-recrawl", null, true],
  ["not the other way round", actor("program", ["site-recrawl"]), "url-write", null, false],
  ["a partner what is its crawler's", actor("partner", [], ["athens"]), "fleet-write", athens, true],
  ["no partner what is another's", actor("partner", [], ["sparta"]), "fleet-write", athens, false],
  [
    "no partner what partners may not",
    actor("partner", [], ["athens"]),
    "fleet-write",
    { ...athens, partnersToo: false },
    false,
  ],
  [
    "nobody for crawlers that it had as a partner",
    actor("staff", [], ["athens"]),
    "fleet-write",
    athens,
    false,
  ],
])("may: %s", (_, who, scope, own, may) => {
  expect(mayDo(who, scope, own)).toBe(may);
});

it("nobody grants rights that it does not have", () => {
  const staff = actor("staff", ["read", "url-write"]);

  expect(cannotGive(staff, ["read"])).toBe(null);
  expect(cannotGive(staff, ["read", "audit-read", "access-write"])).toBe(
    "ben cannot grant scopes that it does not have: audit-read, access-write.",
  );
});
