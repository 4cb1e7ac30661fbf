/** The package has no types, and those that the compiler would make of the data itself are half a megabyte long. */
declare module "world-atlas/countries-50m.json" {
  import type { GeometryCollection, Topology } from "topojson-specification";

  const topology: Topology<{ countries: GeometryCollection<{ name: string }> }>;
  export default topology;
}
