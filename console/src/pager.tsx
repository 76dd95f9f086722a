/** Goes through the pages of a table: to the next, the last, or any by its number. */
import { useEffect, useState } from 'preact/hooks';

import { count } from './format';
import { texts } from './language';

const text = texts({
  en: { pages: 'Pages', of: 'Page {page} of {pages}', page: 'Page', go: 'Go', first: 'First', previous: 'Previous', next: 'Next', last: 'Last', size: 'Rows' },
  zh: { pages: '分页', of: '第 {page} 页，共 {pages} 页', page: '页码', go: '前往', first: '首页', previous: '上一页', next: '下一页', last: '末页', size: '行数' },
});

export const Pager = ({
  page,
  pages,
  size,
  sizes,
  onPage,
  onSize,
}: {
  /** From 0. */
  page: number;
  pages: number;
  size: number;
  sizes: readonly number[];
  onPage: (page: number) => void;
  onSize: (size: number) => void;
}) => {
  const [typed, setTyped] = useState('');
  useEffect(() => setTyped(String(page + 1)), [page]);
  const last = Math.max(0, pages - 1);
  const submit = (event: Event): void => {
    event.preventDefault();
    const wanted = Math.trunc(Number(typed)) - 1;
    if (Number.isFinite(wanted)) onPage(Math.min(Math.max(0, wanted), last));
  };
  return (
    <nav class="row pager" aria-label={text('pages')}>
      <button type="button" disabled={page === 0} onClick={() => onPage(0)}>
        {text('first')}
      </button>
      <button type="button" disabled={page === 0} onClick={() => onPage(page - 1)}>
        {text('previous')}
      </button>
      <span role="status">{text('of', { page: count(page + 1), pages: count(Math.max(1, pages)) })}</span>
      <button type="button" disabled={page >= last} onClick={() => onPage(page + 1)}>
        {text('next')}
      </button>
      <button type="button" disabled={page >= last} onClick={() => onPage(last)}>
        {text('last')}
      </button>
      <form class="row" onSubmit={submit}>
        <label>
          {text('page')}
          <input type="number" min={1} max={pages} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <button type="submit">{text('go')}</button>
      </form>
      <label>
        {text('size')}
        <select value={size} onChange={(event) => onSize(Number(event.currentTarget.value))}>
          {sizes.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
    </nav>
  );
};
