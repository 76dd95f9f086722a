/** How texts become words: told, and chosen. */
import type { MessageInitShape } from '@bufbuild/protobuf';

import type { TextAnalyzer, TextAnalyzerSchema } from '../../contract/souk/search/v1/index_pb';
import { text } from './words';

export type AnalyzerInit = MessageInitShape<typeof TextAnalyzerSchema>;

const KINDS = ['singleWord', 'split', 'minWord', 'maxWord', 'fuzzy'] as const;
type Kind = (typeof KINDS)[number];

/** What was chosen, of all kinds. */
export interface Choice {
  readonly kind: Kind;
  readonly caseSensitive: boolean;
  readonly stemmed: boolean;
  readonly delimitWord: boolean;
  readonly delimiter: string;
  readonly shortest: number;
  readonly longest: number;
}

export const CHOICE: Choice = {
  kind: 'singleWord',
  caseSensitive: false,
  stemmed: false,
  delimitWord: false,
  delimiter: '',
  shortest: 1,
  longest: 7,
};

/** The analyzer of a choice. */
export const analyzer = (choice: Choice): AnalyzerInit => {
  const { caseSensitive, stemmed, delimitWord, delimiter, shortest, longest } = choice;
  switch (choice.kind) {
    case 'singleWord':
      return { kind: { case: 'singleWord', value: { caseSensitive, delimitWord } }, stemmed };
    case 'split':
      return { kind: { case: 'split', value: { delimiter, caseSensitive } }, stemmed };
    case 'fuzzy':
      return { kind: { case: 'fuzzy', value: { minChars: shortest, maxChars: longest, caseSensitive } } };
    default:
      return { kind: { case: choice.kind, value: {} }, stemmed };
  }
};

/** An analyzer in words: `split delimiter="," stemmed`. */
export const analyzerText = (analyzer: TextAnalyzer | undefined): string => {
  if (analyzer?.kind.case === undefined) return '';
  const options = Object.entries(analyzer.kind.value)
    .filter(([name, value]) => !name.startsWith('$') && value !== false && value !== '')
    .map(([name, value]) => (value === true ? name : `${name}=${JSON.stringify(value)}`));
  return [analyzer.kind.case, ...options, ...(analyzer.stemmed ? ['stemmed'] : [])].join(' ');
};

export const AnalyzerChoice = ({ choice, onChoice }: { choice: Choice; onChoice: (choice: Choice) => void }) => {
  const { kind } = choice;
  const check = (name: 'caseSensitive' | 'stemmed' | 'delimitWord') => (
    <label class="check">
      <input type="checkbox" checked={choice[name]} onChange={(event) => onChoice({ ...choice, [name]: event.currentTarget.checked })} />
      {text(name)}
    </label>
  );
  const length = (name: 'shortest' | 'longest') => (
    <label>
      {text(name)}
      <input type="number" min={1} max={7} value={choice[name]} onInput={(event) => onChoice({ ...choice, [name]: Math.trunc(Number(event.currentTarget.value)) })} />
    </label>
  );
  return (
    <>
      <label>
        {text('analyzer')}
        <select value={kind} onChange={(event) => onChoice({ ...choice, kind: KINDS.find((one) => one === event.currentTarget.value) ?? 'singleWord' })}>
          {KINDS.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      {kind === 'split' && (
        <label>
          {text('delimiter')}
          <input value={choice.delimiter} onInput={(event) => onChoice({ ...choice, delimiter: event.currentTarget.value })} />
        </label>
      )}
      {kind === 'fuzzy' && length('shortest')}
      {kind === 'fuzzy' && length('longest')}
      {kind !== 'minWord' && kind !== 'maxWord' && check('caseSensitive')}
      {kind === 'singleWord' && check('delimitWord')}
      {kind !== 'fuzzy' && check('stemmed')}
    </>
  );
};
