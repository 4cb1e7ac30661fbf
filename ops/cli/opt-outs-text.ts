/** Opt-outs for people: a table with what needs a look first, or one of them in sentences. */
import { confirmationName, confirmationText } from "#coordinator/opt-outs/honour";
import type { OptOut } from "#coordinator/opt-outs/opt-out";
import { howMany } from "#core/format";
import { formatTable } from "./output.ts";
import { printable } from "./printable.ts";

/** So many unconfirmed ones on one day, or more, look like a flood. */
const floodPerDay = 50;
const dayMs = 86_400_000;

export function optOutsText(list: readonly OptOut[], now = new Date()): string {
  if (list.length === 0) return "nothing has opted out";
  const table = formatTable(
    [
      { title: "#", align: "right" },
      { title: "what" },
      { title: "state" },
      { title: "since" },
      { title: "until" },
      { title: "hosts", align: "right" },
      { title: "pages", align: "right" },
      { title: "from" },
      { title: "" },
    ],
    list.map((one) => [
      String(one.optOutId),
      printable(one.target, 60),
      one.state,
      day(one.createdAt),
      one.endedAt !== null ? day(one.endedAt) : one.lapsesAt === null ? "" : day(one.lapsesAt),
      String(one.hosts),
      String(one.pages),
      one.requester ?? one.source,
      printable(
        [one.replyTo ?? "", one.words, one.endingWords].filter((text) => text !== "").join(" · "),
        60,
      ),
    ]),
  );
  return [table, ...remarks(list, now)].join("\n");
}

export function optOutText(optOut: OptOut): string {
  const { optOutId, target, state, hosts, pages, lapsesAt } = optOut;
  const covers = `${howMany(hosts, "host")} of the frontier and ${howMany(pages, "page")} of the index`;
  const named = `opt-out ${optOutId} of ${target}`;
  switch (state) {
    case "confirmed":
      return `${named} holds for good: ${covers} are covered, and the pages are deleted`;
    case "unconfirmed":
      return `${named} holds until ${lapsesAt === null ? "it is lifted" : day(lapsesAt)}: ${covers} are covered; ${howToConfirm(optOut)}`;
    case "waiting":
      return `${named} waits: it takes effect when it is confirmed; ${howToConfirm(optOut)}`;
    default:
      return `${named} is ${state}: what it covered is crawled again`;
  }
}

function howToConfirm({ optOutId, target, kind, token }: OptOut): string {
  const byHand = `nearcrawl opt-outs confirm ${optOutId}`;
  return kind === "network"
    ? `confirm it by ${byHand}`
    : `the site confirms it by the DNS record ${confirmationName(target)} TXT "${confirmationText(token)}", or you by ${byHand}`;
}

function remarks(list: readonly OptOut[], now: Date): string[] {
  const waiting = list.filter(({ state }) => state === "waiting").length;
  const today = list.filter(
    ({ source, createdAt }) => source === "form" && now.getTime() - createdAt.getTime() < dayMs,
  );
  const addresses = new Set(today.map(({ requester }) => requester)).size;
  return [
    ...(waiting > 0
      ? [`${waiting} wait to be confirmed: look at them, then nearcrawl opt-outs confirm or lift`]
      : []),
    ...(today.length >= floodPerDay
      ? [
          `${today.length} came by the form within a day, from ${addresses === 1 ? "one address" : `${addresses} addresses`}: this may be a flood`,
        ]
      : []),
  ];
}

const day = (date: Date) => date.toISOString().slice(0, 10);
