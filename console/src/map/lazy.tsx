/** The map, loaded when it is first shown: it is the largest part of the page. */
import type { ComponentProps } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { texts } from '../language';

const text = texts({
  en: { loading: 'Loading the map…', unloaded: 'The map couldn’t be loaded: the server can’t be reached, or has changed. Load the page again.' },
  zh: { loading: '正在加载地图…', unloaded: '地图无法加载：服务器不可用或已更新。请重新加载页面。' },
});

type Drawn = (typeof import('./world'))['default'];

/** See `world.tsx`. */
export const World = (props: ComponentProps<Drawn>) => {
  const [drawn, setDrawn] = useState<Drawn | 'failed' | undefined>(undefined);
  useEffect(() => {
    let waited = true;
    import('./world').then(
      (module) => waited && setDrawn(() => module.default),
      () => waited && setDrawn('failed'),
    );
    return () => {
      waited = false;
    };
  }, []);
  if (drawn === 'failed') {
    return (
      <p class="problem" role="alert">
        {text('unloaded')}
      </p>
    );
  }
  if (drawn === undefined) return <p role="status">{text('loading')}</p>;
  const Drawn = drawn;
  return <Drawn {...props} />;
};
