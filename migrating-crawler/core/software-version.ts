/** What this crawler calls itself to the coordinator; equal to package.json's version (a test holds them together). */
export const softwareVersion = "0.1.0";
