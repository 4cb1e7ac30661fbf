/**
 * Reads the TDM Reservation Protocol (W3C community group, final report of 2 February 2024): whether text and data mining
 * rights are reserved, in `/.well-known/tdmrep.json` by path, in headers and in metas. 1 reserves them, 0 does not, and any
 * other value is ignored. A policy names whom to ask, which makes the use *licensed* instead of *denied*.
 *
 * In the report, the header overrides the file and the page overrides both (section "Processing priority"). Here, any
 * reservation applies. The report does not cover search.
 */

import type { StatedPreference } from "#protocol/preferences";
import { jsonOf } from "../core/json.ts";
import { type RobotsRule, robotsPath, robotsRule, ruleMatches } from "./robots-match.ts";
import { boundedValues, statementsOf } from "./statements.ts";

/** A longer file is not read, and everything is treated as reserved. */
export const maxTdmFileBytes = 64 * 1024;

/** Rules beyond this number are dropped. If one of them reserves, everything that no kept rule names is reserved. */
const maxTdmRules = 500;

const maxLocationCharacters = 2000;
const maxPolicyCharacters = 500;

export interface TdmRule {
  readonly location: string;
  readonly reserved: boolean;
  readonly policy: string;
}

/** Keeps the order. Invalid rules are dropped. */
export function parseTdmFile(bytes: Buffer): TdmRule[] {
  if (bytes.length > maxTdmFileBytes) return [reservedAll];
  const listed = jsonOf(bytes.toString("utf8").replace(/^\ufeff/, ""));
  if (!Array.isArray(listed)) return [];
  const rules = listed.flatMap(ruleOf);
  const left = rules.slice(maxTdmRules);
  return [...rules.slice(0, maxTdmRules), ...(left.some(({ reserved }) => reserved) ? [reservedAll] : [])];
}

const reservedAll: TdmRule = { location: "/", reserved: true, policy: "" };

function ruleOf(listed: unknown): TdmRule[] {
  if (typeof listed !== "object" || listed === null) return [];
  const {
    location,
    "tdm-reservation": reservation,
    "tdm-policy": policy,
  } = listed as Record<string, unknown>;
  const reserved = reservedBy(reservation);
  if (typeof location !== "string" || location.length > maxLocationCharacters || reserved === null) return [];
  return [{ location, reserved, policy: policyOf(policy) }];
}

export class TdmRules {
  readonly rules: readonly TdmRule[];
  readonly #compiled: readonly { readonly rule: TdmRule; readonly path: RobotsRule }[];

  constructor(rules: readonly TdmRule[]) {
    this.rules = rules;
    this.#compiled = rules.flatMap((rule) => {
      const path = robotsRule(false, Buffer.from(rule.location).toString("latin1"), 0);
      return path === null ? [] : [{ rule, path }];
    });
  }

  /** The first matching rule applies, because the report puts the most specific one first. */
  stated(pathAndQuery: string): StatedPreference[] {
    const path = robotsPath(pathAndQuery);
    const found = this.#compiled.find((one) => ruleMatches(one.path, path))?.rule;
    if (found === undefined) return [];
    const { location, reserved, policy } = found;
    const text = `${location} tdm-reservation: ${Number(reserved)}${policy === "" ? "" : `, tdm-policy: ${policy}`}`;
    return reservation({ reserved, policy, text }, "tdmrep.json");
  }
}

/** Takes the `tdm-reservation` and `tdm-policy` values of headers or metas. */
export function tdmReservation(
  said: {
    readonly reservation: string | readonly string[] | undefined;
    readonly policy: string | readonly string[] | undefined;
  },
  place: StatedPreference["place"],
): StatedPreference[] {
  // Several headers of one name may have been joined on the way (RFC 9110 section 5.2).
  const values = boundedValues(said.reservation).flatMap((value) => value.split(",").slice(0, 50));
  if (values.length === 0) return [];
  const policy = policyOf(boundedValues(said.policy)[0]);
  const written = `tdm-reservation: ${values.map((value) => value.trim()).join(", ")}`;
  const text = policy === "" ? written : `${written}; tdm-policy: ${policy}`;
  const known = values.map((value) => reservedBy(value.trim())).filter((one) => one !== null);
  if (known.length === 0) return statementsOf({ standard: "tdm", place }, [], text);
  return reservation({ reserved: known.includes(true), policy, text }, place);
}

function reservation(
  { reserved, policy, text }: { reserved: boolean; policy: string; text: string },
  place: StatedPreference["place"],
): StatedPreference[] {
  const answer = !reserved ? "allowed" : policy === "" ? "denied" : "licensed";
  return statementsOf({ standard: "tdm", place }, [["text-and-data-mining", answer]], text);
}

function reservedBy(value: unknown): boolean | null {
  if (value === 1 || value === "1") return true;
  return value === 0 || value === "0" ? false : null;
}

function policyOf(value: unknown): string {
  return typeof value === "string" ? value.trim().slice(0, maxPolicyCharacters) : "";
}
