/** A text to search names of shops for, with names that begin with it while it is typed. */
import { useId, useState } from 'preact/hooks';

import { useAnswer } from '../../answer';
import { client } from '../../calls';
import { ShopService } from '../../contract/souk/shop/v1/shop_pb';
import { number } from '../../format';
import { texts } from '../../language';
import type { Place } from '../../map/mercator';
import { Problem } from '../../problem';

const text = texts({
  en: { name: 'Name', search: 'Search', corrected: 'No name begins so. Spelled much like it:', km: '{km} km' },
  zh: { name: '名称', search: '搜索', corrected: '没有以此开头的名称。相近的有：', km: '{km} 公里' },
});

const SIZE = 8;

const shops = client(ShopService);

/** `onSearch` is told a text, and of a chosen name which shop has it. */
export const Suggest = ({
  value,
  center,
  onSearch,
}: {
  value: string;
  center: Place;
  onSearch: (text: string, shopId?: string) => void;
}) => {
  const id = useId();
  // What is typed, until it is searched for: undefined when it is what was searched for last.
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const prefix = (typed ?? '').trim();
  const asks = open && prefix !== '';
  const near = { latitude: Number(center.latitude.toFixed(2)), longitude: Number(center.longitude.toFixed(2)) };
  const answer = useAnswer(asks ? JSON.stringify([prefix, near]) : undefined, (options) =>
    shops.suggestShops({ prefix, size: SIZE, center: near }, options),
  );
  const found = answer.value?.suggestions ?? [];
  const shows = found.length > 0;
  const search = (text: string, shopId?: string): void => {
    setOpen(false);
    setActive(-1);
    setTyped(undefined);
    onSearch(text.trim(), shopId);
  };
  const key = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && shows) {
      event.preventDefault();
      setActive((before) => {
        const next = before + step;
        return next < -1 ? found.length - 1 : next >= found.length ? -1 : next;
      });
    } else if (event.key === 'Enter') {
      event.preventDefault();
      const chosen = shows ? found[active] : undefined;
      if (chosen === undefined) search(typed ?? value);
      else search(chosen.name, chosen.shopId);
    } else if (event.key === 'Escape') {
      setOpen(false);
      setActive(-1);
    }
  };
  return (
    <div class="suggest grow">
      <label>
        {text('name')}
        <input
          type="search"
          role="combobox"
          autocomplete="off"
          list={undefined}
          aria-expanded={shows}
          aria-controls={`${id}-names`}
          aria-autocomplete="list"
          aria-activedescendant={shows && active >= 0 ? `${id}-${active}` : undefined}
          maxLength={256}
          value={typed ?? value}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setOpen(true);
            setActive(-1);
          }}
          onKeyDown={key}
          onBlur={() => setOpen(false)}
        />
      </label>
      <button type="button" onClick={() => search(typed ?? value)}>
        {text('search')}
      </button>
      <ul id={`${id}-names`} role="listbox" aria-label={text('name')} hidden={!shows} class="panel">
        {found.map((suggestion, at) => (
          <li
            key={suggestion.shopId}
            id={`${id}-${at}`}
            role="option"
            aria-selected={at === active}
            // Before the field loses the focus, and with it the list goes.
            onMouseDown={(event) => {
              event.preventDefault();
              search(suggestion.name, suggestion.shopId);
            }}
          >
            {suggestion.name}
            {suggestion.distanceMeters !== undefined && (
              <span class="quiet"> {text('km', { km: number(suggestion.distanceMeters / 1000, 1) })}</span>
            )}
          </li>
        ))}
      </ul>
      {shows && !answer.old && answer.value?.corrected === true && <p class="quiet">{text('corrected')}</p>}
      <Problem error={answer.error} />
    </div>
  );
};
