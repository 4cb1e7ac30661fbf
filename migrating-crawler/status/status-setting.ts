/** What `[status]` of the settings file says, for settings/setting-words.ts. */
import type { SettingTable } from "../settings/setting-words.ts";

export const statusTable: SettingTable = {
  path: ["status"],
  isOptional: false,
  words: `---------------------------------------------------------------------------------------------- status
\`nearcrawl crawler status\` needs none of this. Takes a restart.`,
  settings: [
    {
      name: "port",
      value: 7412,
      words:
        "A page that shows the same at http://127.0.0.1:7412/, to browsers on this machine alone (to everybody who is\nlogged in on it). It cannot be used to change anything. Default: not set, no page.",
    },
  ],
};
