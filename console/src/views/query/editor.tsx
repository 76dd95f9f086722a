/** A search as JSON, with what can be written where the cursor is. */
import { useRef, useState } from 'preact/hooks';

import type { IndexField } from '../../contract/souk/search/v1/index_pb';
import { texts } from '../../language';
import type { Violation } from '../../reasons';
import { located, writing } from './json';
import type { Completion } from './schema';
import { completions } from './schema';

const text = texts({
  en: {
    label: 'The search as JSON',
    completions: 'What can be written here (Ctrl+Space goes there)',
    show: 'Show',
  },
  zh: {
    label: 'JSON 形式的搜索',
    completions: '此处可填写的内容（Ctrl+空格 跳转）',
    show: '定位',
  },
});

const SHOWN = 40;

/** `wrong` is what the server said of it, with paths in it. */
export const Editor = ({
  value,
  fields,
  wrong,
  problem,
  change,
  run,
}: {
  value: string;
  fields: readonly IndexField[];
  wrong: readonly Violation[];
  problem: string | undefined;
  change: (next: string) => void;
  run: () => void;
}) => {
  const area = useRef<HTMLTextAreaElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [at, setAt] = useState(0);
  const now = writing(value.slice(0, at));
  const found = completions(now, fields).slice(0, SHOWN);
  const look = (): void => setAt(area.current?.selectionStart ?? 0);
  const insert = ({ written }: Completion): void => {
    const from = at - now.begun.length;
    // A quotation mark that closes what is begun is there already.
    const to = now.quoted && value[at] === '"' ? at + 1 : at;
    change(value.slice(0, from) + written + value.slice(to));
    const empty = /("|\[|\{)("|\]|\})$/.test(written) && written.length > 1 ? 1 : 0;
    const next = from + written.length - empty;
    // When the text is drawn.
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(next, next);
      look();
    });
  };
  const select = (path: string): void => {
    const place = located(value, path);
    if (place === undefined || area.current === null) return;
    area.current.focus();
    area.current.setSelectionRange(...place);
    // A text area scrolls to where it is typed, not to what is selected.
    const lines = value.slice(0, place[0]).split('\n').length;
    const height = Number.parseFloat(getComputedStyle(area.current).lineHeight) || 18;
    area.current.scrollTop = Math.max(0, (lines - 4) * height);
    look();
  };
  return (
    <div class="editor">
      <label>
        {text('label')}
        <textarea
          class="code"
          ref={area}
          rows={18}
          spellcheck={false}
          value={value}
          aria-invalid={problem !== undefined || wrong.length > 0}
          onInput={(event) => {
            change(event.currentTarget.value);
            look();
          }}
          onClick={look}
          onKeyUp={look}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              run();
            } else if (event.key === ' ' && event.ctrlKey) {
              event.preventDefault();
              list.current?.querySelector('button')?.focus();
            }
          }}
        />
      </label>
      {problem !== undefined && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      {wrong.length > 0 && (
        <ul class="bad">
          {wrong.map(({ field = '', description }) => (
            <li key={`${field} ${description}`}>
              <button type="button" onClick={() => select(field)}>
                {text('show')}
              </button>{' '}
              <code>{field}</code> {description}
            </li>
          ))}
        </ul>
      )}
      <p class="quiet">{text('completions')}</p>
      <ul class="completions" ref={list}>
        {found.map((completion) => (
          <li key={completion.shown}>
            <button
              type="button"
              onClick={() => insert(completion)}
              onKeyDown={(event) => {
                if (event.key === 'Escape') area.current?.focus();
              }}
            >
              {completion.shown}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
};
