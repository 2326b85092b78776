/** The forms that values of settings have. Messages say where a value is from and what is wanted, never the value. */

import { ConfigurationError } from "../errors.ts";
import type { Setting, Settings } from "./conninfo.ts";

/** A setting's text, or `undefined` where the default holds. */
export function textOf(settings: Settings, keyword: string): string | undefined {
  return settings.get(keyword)?.value || undefined;
}

/**
 * One of `choices`, in exactly this case; libpq ignores it for TLS versions only, and takes an empty value for the
 * default only there.
 */
export function choiceOf<T extends string>(
  settings: Settings,
  keyword: string,
  choices: readonly T[],
  ignoreCase: boolean = false,
): T | undefined {
  const setting = settings.get(keyword);
  if (setting === undefined || ignoreCase && setting.value === "") return undefined;
  const { value } = setting;
  const found = choices.find((choice) =>
    choice === value || ignoreCase && choice.toLowerCase() === value.toLowerCase()
  );
  if (found === undefined) fail(setting, choices.map((choice) => `"${choice}"`).join(", "));
  return found;
}

/** A whole number as libpq reads one: an int32 in decimal, blanks around it allowed. */
export function integerOf(settings: Settings, keyword: string): number | undefined {
  const setting = settings.get(keyword);
  if (setting === undefined) return undefined;
  const value = parseInteger(setting.value);
  if (value === undefined) fail(setting, "a whole number");
  return value;
}

/** `1` or `0`; `undefined` where the default holds. */
export function flagOf(settings: Settings, keyword: string): boolean | undefined {
  const setting = settings.get(keyword);
  if (setting === undefined || setting.value === "") return undefined;
  const value = parseInteger(setting.value);
  if (value === undefined) fail(setting, "0 or 1");
  return value !== 0;
}

/** The int32 that `text` spells in decimal, or `undefined`. */
export function parseInteger(text: string): number | undefined {
  const match = /^[ \t\n\v\f\r]*([+-]?[0-9]{1,20})[ \t\n\v\f\r]*$/.exec(text);
  if (match === null) return undefined;
  const value = Number(match[1]);
  return value >= -0x8000_0000 && value <= 0x7fff_ffff ? value : undefined;
}

const AUTH_METHODS = ["password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none"] as const;

/** An authentication method in `require_auth`. `none`: the server asks for nothing. */
export type AuthMethod = typeof AUTH_METHODS[number];

/** The methods that `require_auth` allows, or `undefined`: any. */
export function authMethodsOf(settings: Settings): readonly AuthMethod[] | undefined {
  const setting = settings.get("require_auth");
  if (setting === undefined || setting.value === "") return undefined;
  const names = setting.value.split(",");
  const negated = names[0]!.startsWith("!");
  const listed = new Set<AuthMethod>();
  for (const name of names) {
    if (name.startsWith("!") !== negated) {
      fail(setting, "either methods to allow, or methods to forbid with !");
    }
    const method = AUTH_METHODS.find((known) => known === (negated ? name.slice(1) : name));
    if (method === undefined) {
      fail(
        setting,
        `a list of ${AUTH_METHODS.map((known) => `"${known}"`).join(", ")}`,
      );
    }
    if (listed.has(method)) fail(setting, `each method once, but "${method}" is there twice`);
    listed.add(method);
  }
  return AUTH_METHODS.filter((method) => listed.has(method) !== negated);
}

function fail(setting: Setting, wanted: string): never {
  throw new ConfigurationError(`Cannot use ${setting.from}: wanted ${wanted}`);
}

/** Checks a limit given in the options object. */
export function limitOf(
  options: object,
  name: string,
  range: { readonly least: number; readonly most?: number; readonly fallback: number },
): number {
  const value = (options as Readonly<Record<string, unknown>>)[name];
  if (value === undefined) return range.fallback;
  const most = range.most ?? 0x7fff_ffff;
  if (!Number.isInteger(value) || value as number < range.least || value as number > most) {
    const received = typeof value === "number" ? String(value) : `a ${typeof value}`;
    throw new ConfigurationError(
      `Cannot use option "${name}": wanted a whole number from ${range.least} to ${most}, received ${received}`,
    );
  }
  return value as number;
}
