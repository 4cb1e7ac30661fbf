/** The API's description (OpenAPI 3.1), made from the operations of all rooms. */
import { softwareVersion } from "#protocol/software-version";
import {
  accessOperations,
  accountOperations,
  partnerAccessOperations,
  signInLinkOperations,
} from "./access/access-ask.ts";
import { auditOperations } from "./access/audit-ask.ts";
import { tokenOperations } from "./access/tokens-ask.ts";
import { alertDeedOperations, alertOperations } from "./alerts/alerts-ask.ts";
import { changeOperations } from "./changes/changes-ask.ts";
import { channelOperations } from "./channels/channels-ask.ts";
import { exploreOperations } from "./explore/explore-ask.ts";
import { coordinatorOperations } from "./federation/coordinators-ask.ts";
import { exchangeApi } from "./federation/federation-api.ts";
import { findOperations } from "./find/find-ask.ts";
import { fleetOperations } from "./fleet/fleet-ask.ts";
import { complaintOperations } from "./opt-outs/complaints-ask.ts";
import { contactApi } from "./opt-outs/opt-outs-api.ts";
import { optOutOperations } from "./opt-outs/opt-outs-ask.ts";
import { operationApi, overviewApi } from "./overview/overview-api.ts";
import { overviewOperations } from "./overview/overview-ask.ts";
import { recrawlOperations } from "./recrawl/recrawl-ask.ts";
import { jobOperations } from "./registry/job-ask.ts";
import { planOperations } from "./registry/plan-ask.ts";
import { registryOperations } from "./registry/registry-ask.ts";
import { releasesApi } from "./releases/releases-api.ts";
import { versionOperations } from "./releases/versions-ask.ts";
import { reportOperations } from "./reports/reports-ask.ts";
import { searchApi } from "./search/search-api.ts";
import { policyOperations } from "./settings/settings-ask.ts";
import { siteCapOperations } from "./site-caps/site-caps-ask.ts";
import { siteOperations } from "./sites/site-ask.ts";
import { sitesOperations } from "./sites/sites-ask.ts";
import { storageOperations } from "./storage/storage-ask.ts";
import { submissionOperations } from "./submissions/submissions-ask.ts";
import { type ApiOperations, describeOperations, type OpenApi } from "./web/api-operation.ts";
import { graphOperations } from "./web-graph/graph-ask.ts";
import { whoOperations } from "./who/who-ask.ts";

/** By the tag of their operations, in the order of the document. */
export const apiGroups: Readonly<Record<string, readonly ApiOperations[]>> = {
  access: [auditOperations, accountOperations, accessOperations, signInLinkOperations, tokenOperations],
  changes: [changeOperations],
  channels: [channelOperations],
  contact: [contactApi],
  coordinators: [coordinatorOperations, exchangeApi],
  explore: [exploreOperations],
  find: [findOperations],
  fleet: [
    ...[fleetOperations, partnerAccessOperations, versionOperations, optOutOperations],
    ...[complaintOperations, siteCapOperations],
  ],
  graph: [graphOperations],
  operation: [operationApi],
  overview: [overviewOperations, overviewApi, alertOperations, alertDeedOperations],
  policies: [policyOperations],
  recrawl: [recrawlOperations],
  registry: [registryOperations, jobOperations, planOperations],
  releases: [releasesApi],
  reports: [reportOperations],
  search: [searchApi],
  sites: [sitesOperations, siteOperations],
  storage: [storageOperations],
  urls: [submissionOperations],
  who: [whoOperations],
};

const info = {
  title: "Nearcrawl",
  version: softwareVersion,
  summary: "Who crawls what, and why; the state of the crawl; search over its pages.",
  description:
    "What is read needs a token with the scope read, unless reading is for everybody, as it is where only the " +
    "coordinator's own machine reaches it. What changes something is a POST of application/json with a token of " +
    "the right scope (`Authorization: Bearer`), from no other origin; a browser's cookie is not enough. Each " +
    "answer is also at the address of its page, with `Accept: application/json`. Dates are ISO 8601 in UTC, " +
    "times milliseconds, sizes bytes. Errors are `{error: {status, message}}`, the message in plain words.",
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

let described: OpenApi | null = null;

/** Made when it is first asked for, which takes some 90 ms: no start waits for it. */
export function describeApi(): OpenApi {
  described ??= makeDescription();
  return described;
}

function makeDescription(): OpenApi {
  const parts = Object.entries(apiGroups).flatMap(([tag, all]) =>
    all.map((operations) => describeOperations(operations, tag)),
  );
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/" }],
    paths: allOf(parts.map(({ paths }) => paths)),
    components: {
      securitySchemes: {
        operatorToken: {
          type: "http",
          scheme: "bearer",
          description: "Made by nearcrawl operator-token create.",
        },
      },
      schemas: allOf(parts.map(({ schemas }) => schemas)),
    },
  };
}

/** Of all rooms; two rooms that mean different things by one name would describe one of them wrongly. */
function allOf<T>(named: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  const all: Record<string, T> = {};
  for (const [name, one] of named.flatMap(Object.entries<T>)) {
    const known = all[name];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(one)) {
      throw new Error(`the API's description has two of ${name}`);
    }
    all[name] = one;
  }
  return all;
}
