/** `npm run reference`: writes the pages of the runbook that are made from the program itself. */
import { writeFileSync } from "node:fs";
import { references } from "./references.ts";

for (const [file, text] of Object.entries(await references()))
  writeFileSync(new URL(`./runbook/${file}`, import.meta.url), text);
