/** OpenSearch itself does what every engine of the search does. */
import { beforeAll, describe } from "vitest";
import { engineContract } from "../search/engine-contract.ts";
import { openOpenSearch } from "../search/open-engines.ts";
import { relevanceContract } from "../search/relevance/relevance-contract.ts";
import { openSearchClasses, sharedOpenSearch } from "./open-search.ts";

const classes = openSearchClasses();

describe.skipIf(classes === null)("OpenSearch", () => {
  let url: string;
  let made = 0;
  beforeAll(async () => {
    url = await sharedOpenSearch(classes!);
  });

  const open = async () => await openOpenSearch(url, `contract-${process.pid}-${made++}`);
  engineContract("an index of OpenSearch", open);
  relevanceContract("an index of OpenSearch", open);
});
