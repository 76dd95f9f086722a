/** English and Chinese. A view's words stand in a file of its own, in both. */
import { signal } from '@preact/signals';

import { keep, kept } from './kept';

export type Language = 'en' | 'zh';

const first = (): Language => {
  const chosen = kept('language');
  if (chosen === 'en' || chosen === 'zh') return chosen;
  return navigator.language.startsWith('zh') ? 'zh' : 'en';
};

/** The language of the page. What reads it in a component is drawn again when it changes. */
export const language = signal<Language>(first());

language.subscribe((now) => {
  document.documentElement.lang = now === 'zh' ? 'zh-CN' : 'en';
});

/** Chooses the language, and remembers it. */
export const speak = (next: Language): void => {
  keep('language', next);
  language.value = next;
};

/** What stands for `{name}` in a text. */
export type Values = Record<string, string | number>;

/** Texts by their names, in both languages: TypeScript refuses one that lacks a text of the other. */
export const texts =
  <Name extends string>(words: { en: Record<Name, string>; zh: Record<NoInfer<Name>, string> }) =>
  (name: Name, values: Values = {}): string =>
    words[language.value][name].replace(/\{(\w+)\}/g, (whole, key: string) => String(values[key] ?? whole));
