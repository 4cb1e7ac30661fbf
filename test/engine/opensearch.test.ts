/** OpenSearch itself does what every engine of the search does. */
import { beforeAll, describe } from "vitest";
import { OpenSearchEngine } from "#coordinator/tell/search/engine/opensearch-engine";
import { OpenSearchIndex } from "#coordinator/tell/search/export/opensearch-target";
import { engineContract, type OpenedEngine } from "../search/engine-contract.ts";
import { askEngine, openSearchClasses, sharedOpenSearch } from "./open-search.ts";

const classes = openSearchClasses();

describe.skipIf(classes === null)("OpenSearch", () => {
  let url: string;
  let made = 0;
  beforeAll(async () => {
    url = await sharedOpenSearch(classes!);
  });

  async function openAt(index: string): Promise<OpenedEngine> {
    const place = { origin: url, index, authorization: null, authorities: null };
    const target = new OpenSearchIndex({
      ...place,
      pause: async () => {},
      random: () => 1,
      onTrouble: (words) => process.stderr.write(`${words}\n`),
      onRefused: (words) => process.stderr.write(`${words}\n`),
    });
    const engine = new OpenSearchEngine(place);
    const close = async () => void (await Promise.all([target.close(), engine.close()]));
    return {
      ...{ target, engine },
      settled: async () => void (await askEngine(`${url}/${index}/_refresh`, { method: "POST" })),
      reopened: async () => {
        await close();
        return await openAt(index);
      },
      close: async () => {
        await askEngine(`${url}/${index}`, { method: "DELETE" });
        await close();
      },
    };
  }

  engineContract("an index of OpenSearch", async () => await openAt(`contract-${process.pid}-${made++}`));
});
