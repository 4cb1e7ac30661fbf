/** Commands that only ask a room of the coordinator, or have it do something: each is one operation of the API. */
import type { Command } from "commander";
import { ownName } from "../issue-command-link.ts";
import { groupOf, operationCommand, operationGroup, roomCommand } from "../room-command.ts";

export async function accessCommand(): Promise<Command> {
  const { accessOperations } = await import("#coordinator/access/access-ask");
  return operationGroup(
    "access",
    "who is signed in to the pages, and unused sign-in links; end either",
    accessOperations,
  );
}

export async function operatorTokenCommand(): Promise<Command> {
  const { tokenOperations } = await import("#coordinator/access/tokens-ask");
  return operationGroup(
    "operator-token",
    "tokens for operators' programs: invite, rotate and revoke crawlers over HTTP",
    tokenOperations,
    `

Examples:
  nearcrawl operator-token create dashboard --scope fleet-read
  curl -H 'Authorization: Bearer TOKEN' COORDINATOR/api/fleet/invitations      (its address, as nearcrawl coordinator prints it)

What can be asked: /api/openapi.json`,
  );
}

export async function signInCommand(): Promise<Command> {
  const { signInLinkOperations } = await import("#coordinator/access/access-ask");
  const command = operationCommand(signInLinkOperations.issueSignInLink);
  return roomCommand({ ...command, usual: () => ({ name: ownName(), role: "operator" }) });
}

export async function auditCommand(): Promise<Command> {
  const { auditOperations } = await import("#coordinator/access/audit-ask");
  return roomCommand(operationCommand(auditOperations.audit));
}

export async function channelsCommand(): Promise<Command> {
  const { coverage: _, ...operations } = (await import("#coordinator/channels/channels-ask"))
    .channelOperations;
  return operationGroup(
    "channels",
    "what is crawled of a host, one of its directories or a set of them: list, add, remove",
    operations,
    `

Filters are patterns of path and query: * is anything, a final $ the end; /docs/ is everything that starts with it.

Examples:
  nearcrawl channels add https://www.example.org/docs/ --seed https://www.example.org/docs/ --exclude '/docs/old/' --max-depth 5
  nearcrawl channels remove 3`,
  );
}

export async function coverageCommand(): Promise<Command> {
  const { channelOperations } = await import("#coordinator/channels/channels-ask");
  return roomCommand(operationCommand(channelOperations.coverage));
}

export async function findCommand(): Promise<Command> {
  const { findOperations } = await import("#coordinator/find/find-ask");
  return roomCommand(operationCommand(findOperations.find));
}

export async function storageCommand(): Promise<Command> {
  const { storageOperations } = await import("#coordinator/storage/storage-ask");
  return roomCommand(operationCommand(storageOperations.storage));
}

export async function siteCapsCommand(): Promise<Command> {
  const { siteCapOperations } = await import("#coordinator/site-caps/site-caps-ask");
  return operationGroup(
    "site-caps",
    "sites that are crawled more slowly than they would be: list, set, remove",
    siteCapOperations,
    `

A cap is the least time between two requests to each host of a site. Robots.txt, the site's answers and the usual
pace hold beside it: the slowest does. It holds from the next lease of each host on; after its removal a crawler
that was told it keeps to it until it reads the site's robots.txt again, within a day.

Example:
  nearcrawl site-caps set example.org --seconds 10 --words 'asked for by its webmaster'`,
  );
}

export async function complaintsCommand(): Promise<Command> {
  const { complaintOperations } = await import("#coordinator/opt-outs/complaints-ask");
  return operationGroup(
    "complaints",
    "complaints about our requests, each with what we sent and an answer to forward: add, list, close",
    complaintOperations,
    `

Examples:
  nearcrawl complaints add --target www.example.org --from abuse@isp.example --text 'too fast'
  nearcrawl complaints close 12 --words 'answered on 3 March'`,
  );
}

export async function optOutsCommand(): Promise<Command> {
  const { optOutOperations } = await import("#coordinator/opt-outs/opt-outs-ask");
  return operationGroup(
    "opt-outs",
    "pages, sites and networks that no crawler sends requests to: list, add, confirm, lift, erase",
    optOutOperations,
    `

A running coordinator honours a change at once: it assigns nothing more. Crawlers stop within a minute; those of
release 0.2.0 do not hear of a part of a site, and finish the slice of pages that they have.

What opts out is its scope, which the target says: a URL is that page alone, in all its spellings, by http and
https; a URL with /* at its end is that page with what is below it, by whole path segments; https://HOST/* is one
host; a name, or a URL of a front page, is a site with everything below its name; and a range is a network. --scope
says otherwise. Much (more than two hosts or 100 pages, a public suffix, a network larger than a /16 or an IPv6 /29)
takes --yes-remove and the number of pages that go, which the refusal names; a tenth off counts as the same, since
pages come and go.

Examples:
  nearcrawl opt-outs preview 'https://www.example.org/members/*'
  nearcrawl opt-outs add https://www.example.org/members/jane
  nearcrawl opt-outs add www.example.org --words 'by letter of 3 March'
  nearcrawl opt-outs add 192.0.2.0/24 --yes-remove 1204
  nearcrawl opt-outs erase https://www.example.org/members/jane
  nearcrawl opt-outs lift 17 --words 'the owner did not request it'`,
  );
}

export async function recrawlCommand(): Promise<Command> {
  const { recrawlOperations } = await import("#coordinator/recrawl/recrawl-ask");
  return roomCommand(operationCommand(recrawlOperations.recrawlPlans));
}

export async function overviewCommand(): Promise<Command> {
  const { overviewOperations } = await import("#coordinator/overview/overview-ask");
  return roomCommand(operationCommand(overviewOperations.overview));
}

export async function queueCommand(): Promise<Command> {
  const { overviewOperations } = await import("#coordinator/overview/overview-ask");
  const { queue, hostsInHand } = overviewOperations;
  return roomCommand(operationCommand(queue))
    .enablePositionalOptions()
    .addCommand(roomCommand(operationCommand(hostsInHand)));
}

export async function accuracyCommand(): Promise<Command> {
  const { overviewOperations } = await import("#coordinator/overview/overview-ask");
  return roomCommand(operationCommand(overviewOperations.accuracy));
}

export async function changesCommand(): Promise<Command> {
  const { changeOperations } = await import("#coordinator/changes/changes-ask");
  return roomCommand(operationCommand(changeOperations.changes));
}

export async function searchCommand(): Promise<Command> {
  const { searchOperations } = await import("#coordinator/search/search-ask");
  const { exportCommand } = await import("../search/export-command.ts");
  // What stands after export is export's.
  const command = roomCommand(operationCommand(searchOperations.search)).enablePositionalOptions();
  return command.addCommand(exportCommand());
}

export async function pageCommand(): Promise<Command> {
  const { pageOperations } = await import("#coordinator/search/page-ask");
  return roomCommand(operationCommand(pageOperations.page));
}

export async function reportCommand(): Promise<Command> {
  const { reportOperations } = await import("#coordinator/reports/reports-ask");
  return operationGroup(
    "report",
    "what the crawl comes to: coverage, organisations, subnets, crawlers, placement",
    reportOperations,
    `

The same as pages: /reports/coverage, /reports/organisations and so on.

Examples:
  nearcrawl report coverage --country DE
  nearcrawl report subnets --csv > subnets.csv`,
  );
}

/** `nearcrawl fleet advise`, for whoever looks for it among the crawlers. */
export async function adviseCommand(): Promise<Command> {
  const { reportOperations } = await import("#coordinator/reports/reports-ask");
  return roomCommand({ ...operationCommand(reportOperations.placementReport), name: "advise" });
}

export async function exploreCommand(): Promise<Command> {
  const { exploreOperations } = await import("#coordinator/explore/explore-ask");
  return roomCommand(operationCommand(exploreOperations.explore));
}

export async function siteCommand(): Promise<Command> {
  const { sitesOperations } = await import("#coordinator/sites/sites-ask");
  const { siteOperations } = await import("#coordinator/sites/site-ask");
  const command = roomCommand(operationCommand(siteOperations.site));
  const list = roomCommand(operationCommand(sitesOperations.sites));
  return command.enablePositionalOptions().addCommand(list);
}

export async function coordinatorsCommand(): Promise<Command> {
  const { coordinatorOperations } = await import("#coordinator/federation/coordinators-ask");
  return operationGroup(
    "coordinators",
    "coordinators above and below this one: who owns which domains, and what waits",
    coordinatorOperations,
    `

A child is a coordinator whose settings name a parent: {"parent": {"url", "key", "owns": [".gr"]}}. It sends up what
it does not own, and gets what it owns.

Examples:
  nearcrawl coordinators invite athens
  nearcrawl coordinators remove athens`,
  );
}

export async function policyCommand(): Promise<Command> {
  const { policyOperations } = await import("#coordinator/settings/settings-ask");
  const { valuesIn } = await import("../policy-words.ts");
  const change = { operation: policyOperations.changePolicies, named: { words: "why" } } as const;
  return groupOf(
    "policy",
    "settings of the fleet's behaviour; a change takes effect at once in every running coordinator",
    [
      {
        ...{ name: "show", operation: policyOperations.policies, takes: "q" },
        says: "every policy, or those with a word in name, title or help: what is in force, the default, and who changed it",
        part: "in-force",
      },
      {
        ...{ name: "preview", operation: policyOperations.previewPolicies, takes: "name=value..." },
        says: "preview the effect of a change, computed from the crawl so far; nothing is saved",
        body: (words) => ({ values: valuesIn(words) }),
      },
      {
        ...{ name: "set", ...change, takes: "name=value..." },
        says: "change policies; all of them or none. NAME= alone: back to the file's value",
        body: (words, { why = "" }) => ({ values: valuesIn(words), basedOn: null, words: why }),
      },
      {
        ...{ name: "reset", ...change, takes: "name..." },
        says: "back to the value of the coordinator's file, or the default where it has none",
        body: (words, { why = "" }) => ({
          values: Object.fromEntries(words.map((name) => [name, null])),
          basedOn: null,
          words: why,
        }),
      },
      {
        ...{ name: "history", operation: policyOperations.policies, without: "q show" },
        says: "who changed what, when and why, the latest first",
        part: "history",
      },
      {
        ...{ name: "take-back", ...change, takes: "version" },
        says: "revert what a version changed",
        body: ([version], { why = "" }) => ({
          values: {},
          takeBack: Number(version),
          basedOn: null,
          words: why,
        }),
      },
    ],
    `

Examples:
  nearcrawl policy show --show basic
  nearcrawl policy show delegation.lambdaMs
  nearcrawl policy preview delegation.lambdaMs=0.5
  nearcrawl policy set delegation.lambdaMs=0.5 --why 'news sites'
  nearcrawl policy reset delegation.lambdaMs
  nearcrawl policy take-back 3`,
  );
}

export async function whoCommand(): Promise<Command> {
  const { whoOperations } = await import("#coordinator/who/who-ask");
  return roomCommand(operationCommand(whoOperations.who));
}
