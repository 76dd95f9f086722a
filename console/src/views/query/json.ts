/** JSON as text: where a value stands in it, and what is being written at a place. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The parts of a path as the server writes it: `bool.must[0]`, `aggregations["types"].terms`. */
export const parts = (path: string): (string | number)[] =>
  [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(([, quoted, index, name]) =>
    quoted !== undefined ? quoted.replace(/\\(.)/g, '$1') : index !== undefined ? Number(index) : (name ?? ''),
  );

/** The path of a member, and of an element. */
export const member = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
export const entry = (path: string, name: string): string => `${path}["${name.replace(/[\\"]/g, '\\$&')}"]`;
export const element = (path: string, index: number): string => `${path}[${index}]`;

/** The deepest part of a path that a value has. */
export const deepest = (value: Json, path: string): string => {
  let at: Json | undefined = value;
  let known = '';
  for (const part of parts(path)) {
    if (typeof part === 'number') {
      at = Array.isArray(at) ? at[part] : undefined;
      if (at === undefined) return known;
      known = element(known, part);
    } else {
      const inMap = path.startsWith(entry(known, part));
      at = isObject(at) ? at[part] : undefined;
      if (at === undefined) return known;
      known = inMap ? entry(known, part) : member(known, part);
    }
  }
  return known;
};

const SPACE = /\s/;

/** Reads JSON that is known to be whole. */
class Reader {
  at = 0;
  constructor(readonly text: string) {}

  space(): void {
    while (this.at < this.text.length && SPACE.test(this.text[this.at] ?? '')) this.at += 1;
  }

  string(): string {
    const begin = this.at;
    this.at += 1;
    while (this.at < this.text.length && this.text[this.at] !== '"') this.at += this.text[this.at] === '\\' ? 2 : 1;
    this.at += 1;
    return JSON.parse(this.text.slice(begin, this.at)) as string;
  }

  /** Passes a value, and looks in it for the rest of a path; gives what stands there, as far as it is there. */
  value(path: readonly (string | number)[]): readonly [number, number] {
    this.space();
    const begin = this.at;
    let found: readonly [number, number] | undefined;
    const [first, ...rest] = path;
    const open = this.text[this.at];
    if (open === '{' || open === '[') {
      this.at += 1;
      this.space();
      for (let index = 0; this.at < this.text.length && this.text[this.at] !== '}' && this.text[this.at] !== ']'; index += 1) {
        let name: string | number = index;
        if (open === '{') {
          name = this.string();
          this.space();
          this.at += 1;
        }
        const inside = this.value(name === first ? rest : []);
        if (name === first) found = inside;
        this.space();
        if (this.text[this.at] === ',') this.at += 1;
        this.space();
      }
      this.at += 1;
    } else if (open === '"') {
      this.string();
    } else {
      while (this.at < this.text.length && !/[\s,\]}]/.test(this.text[this.at] ?? '')) this.at += 1;
    }
    return found ?? [begin, this.at];
  }
}

/** Where the deepest part of a path stands in JSON; nowhere in what isn't JSON. */
export const located = (text: string, path: string): readonly [number, number] | undefined => {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return new Reader(text).value(parts(path));
};

/** What is being written at a place. */
export interface Writing {
  /** The names and places that lead to the object or list that it is in. */
  readonly inside: readonly (string | number)[];
  /** The member whose value it is; undefined when it is a name, or an element of a list. */
  readonly of: string | undefined;
  readonly expects: 'name' | 'value' | 'nothing';
  /** What of it is there already, and whether its quotation mark is. */
  readonly begun: string;
  readonly quoted: boolean;
}

interface Level {
  readonly list: boolean;
  readonly name: string | number;
  state: 'name' | 'colon' | 'value' | 'comma';
  member: string;
  index: number;
}

/** What is being written behind `before`, which is the beginning of JSON. */
export const writing = (before: string): Writing => {
  const levels: Level[] = [];
  let begun = '';
  let quoted = false;
  for (let at = 0; at < before.length; at += 1) {
    const level = levels.at(-1);
    const character = before[at] ?? '';
    begun = '';
    quoted = false;
    if (character === '"') {
      let end = at + 1;
      while (end < before.length && before[end] !== '"') end += before[end] === '\\' ? 2 : 1;
      const content = before.slice(at + 1, end);
      if (end >= before.length) {
        begun = content;
        quoted = true;
        break;
      }
      if (level?.state === 'name') {
        level.member = content;
        level.state = 'colon';
      } else if (level !== undefined) level.state = 'comma';
      at = end;
    } else if (character === '{' || character === '[') {
      const list = character === '[';
      levels.push({
        list,
        name: level === undefined ? '' : level.list ? level.index : level.member,
        state: list ? 'value' : 'name',
        member: '',
        index: 0,
      });
    } else if (character === '}' || character === ']') {
      levels.pop();
      const around = levels.at(-1);
      if (around !== undefined) around.state = 'comma';
    } else if (character === ':') {
      if (level !== undefined) level.state = 'value';
    } else if (character === ',') {
      if (level !== undefined) {
        level.state = level.list ? 'value' : 'name';
        level.index += 1;
      }
    } else if (!SPACE.test(character)) {
      let end = at;
      while (end < before.length && !/[\s,:[\]{}"]/.test(before[end] ?? '')) end += 1;
      begun = before.slice(at, end);
      if (end < before.length && level !== undefined) level.state = 'comma';
      at = end - 1;
    }
  }
  const level = levels.at(-1);
  const expects = level === undefined ? 'nothing' : level.state === 'name' ? 'name' : level.state === 'value' ? 'value' : 'nothing';
  return {
    inside: levels.slice(1).map(({ name }) => name),
    of: level === undefined || level.list || expects !== 'value' ? undefined : level.member,
    expects,
    begun,
    quoted,
  };
};
