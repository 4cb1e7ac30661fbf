/** /channels: what is crawled of parts of hosts; operators add and remove. */
import type { z } from "zod";
import { UsageError } from "#core/errors";
import { hostNamed } from "#core/url-key";
import type { AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { readChannel } from "./channel.ts";
import type { ChannelStore } from "./channel-store.ts";
import { type addChannelBody, channelsApi } from "./channels-api.ts";
import { coverageBody, coverageCsv } from "./coverage-page.ts";
import type { CoverageList, CoverageQuery } from "./coverage-reads.ts";
import { channelChange, channelsBody, channelsCsv, placeWords, toldChannel } from "./page.ts";

interface ChannelPorts {
  readonly store: ChannelStore;
  /** Null: there is no such channel, submission or host. `maxDepth`: as the scope has it now. */
  readonly coverage: (query: Omit<CoverageQuery, "maxDepth">) => Promise<CoverageList | null>;
}

export function channelRoutes({ store, coverage }: ChannelPorts): WebPart {
  return ({ views, actions }) => {
    views.describe({
      ...{ path: "/coverage", operation: channelsApi.coverage },
      view: async ({ query }) => {
        const number = (name: string) => (query(name) === "" ? null : Number(query(name)));
        const [channel, submission] = [number("channel"), number("submission")];
        const isNumber = (value: number | null) =>
          value === null || (Number.isInteger(value) && value > 0 && value < 2 ** 31);
        if (!isNumber(channel)) return "channel: must be a number, as listed";
        if (!isNumber(submission)) return "submission: must be a number, as on its receipt";
        const host = query("host") === "" ? null : hostNamed(query("host"));
        if (host === null && query("host") !== "")
          return "host: must be a host's name, such as www.example.org";
        if ([channel, submission, host].filter((one) => one !== null).length > 1)
          return "channel, submission, host: name one of them";
        const most = query("format") === "csv" ? placesInCsv : placesShown;
        const value = await coverage({ channel, submission, host, most });
        if (value === null) return null;
        return {
          status: 200,
          value,
          title: "Channel coverage",
          body: () => coverageBody(value),
          csv: () => coverageCsv(value),
        };
      },
    });
    views.describe({
      ...{ path: "/channels", operation: channelsApi.channels },
      view: async () => {
        const channels = await store.list();
        return {
          status: 200,
          value: { channels: channels.map(toldChannel) },
          title: "Channels",
          body: (viewer) => channelsBody({ channels, viewer }),
          csv: () => channelsCsv(channels),
        };
      },
    });
    actions.describe({
      ...{ path: "/channels", operation: channelsApi.addChannel },
      fromForm: bodyOf,
      refill: (values, viewer, fault) => channelsBody({ channels: [], viewer, typed: { values, fault } }),
      act: async (asked) => await add(asked, store),
    });
    actions.describe({
      ...{ path: "/channels/:number/remove", operation: channelsApi.removeChannel },
      fromForm: () => ({}),
      act: async (asked) => await remove(asked, store),
    });
  };
}

const placesShown = 100;
const placesInCsv = 1000;

const linesOf = (text = "") => text.split(/[\s,]+/).filter((line) => line !== "");

function bodyOf(values: Readonly<Record<string, string>>): z.input<typeof addChannelBody> {
  const depth = (values.maxDepth ?? "").trim();
  return {
    prefixes: linesOf(values.prefixes),
    seeds: linesOf(values.seeds),
    include: linesOf(values.include),
    exclude: linesOf(values.exclude),
    maxDepth: depth === "" ? null : Number(depth),
  };
}

async function add(
  { body, now }: AskedAction<BodyOf<typeof channelsApi.addChannel>>,
  store: ChannelStore,
): Promise<Outcome> {
  try {
    const made = await store.add(readChannel(body), now);
    if (!("channelId" in made)) return refused(made.join("\n"), body);
    const change = channelChange(made, "channel-added");
    return {
      type: "done",
      status: 201,
      value: toldChannel(made),
      goTo: "/channels",
      said: change.words,
      change,
    };
  } catch (error) {
    if (error instanceof UsageError) return refused(error.message, body);
    throw error;
  }
}

/** The form once more, with what was typed. */
function refused(words: string, body: BodyOf<typeof channelsApi.addChannel>): Outcome {
  const values = {
    prefixes: body.prefixes.join("\n"),
    seeds: body.seeds.join("\n"),
    include: body.include.join("\n"),
    exclude: body.exclude.join("\n"),
    maxDepth: body.maxDepth === null ? "" : String(body.maxDepth),
  };
  return {
    type: "fault",
    status: 422,
    title: "Invalid channel",
    words,
    again: (viewer, fault) => channelsBody({ channels: [], viewer, typed: { values, fault } }),
  };
}

async function remove({ param, now }: AskedAction<unknown>, store: ChannelStore): Promise<Outcome> {
  const number = param("number");
  const removed = /^[1-9]\d{0,8}$/.test(number) ? await store.remove(Number(number), now) : null;
  if (removed === null)
    return {
      type: "fault",
      status: 404,
      title: "Not known",
      words: `There is no channel ${number.slice(0, 20)}.`,
    };
  const change = channelChange(removed, "channel-removed");
  const said = `${placeWords(removed)} is crawled as the scope says.`;
  return { type: "done", value: toldChannel(removed), goTo: "/channels", said, change };
}
