// Values in the fragment of the address, which may be cut or edited.

/** What does not decode is taken as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const encodeNames = (names: readonly string[]) => names.map(encodeURIComponent).join("/");
export const decodeNames = (text: string) => (text === "" ? [] : text.split("/").map(decoded));

export function one<T extends string>(value: string, of: readonly T[], standard: T): T {
  return of.includes(value as T) ? (value as T) : standard;
}

export function whole<T extends number | null>(value: string, standard: T): number | T {
  return /^\d{1,15}$/.test(value) ? Number(value) : standard;
}
