/** The page around its views: navigation, language, theme, who calls. */
import type { ComponentType } from 'preact';
import { useEffect, useErrorBoundary, useState } from 'preact/hooks';

import { address, link } from './address';
import { language, speak, texts } from './language';
import { SignIn } from './sign-in';
import { paint, theme } from './theme';
import type { View } from './views';
import { views } from './views';

const text = texts({
  en: {
    views: 'Views',
    skip: 'Skip to the content',
    light: 'Light',
    dark: 'Dark',
    other: '中文',
    missing: 'There is no view “{name}”.',
    loading: 'Loading…',
    unloaded: 'A part of the page couldn’t be loaded: the server can’t be reached, or has changed. Nothing is lost: load the page again.',
    broken: 'This view has failed: {message}',
    reload: 'Load again',
  },
  zh: {
    views: '视图',
    skip: '跳到内容',
    light: '浅色',
    dark: '深色',
    other: 'English',
    missing: '没有视图“{name}”。',
    loading: '加载中…',
    unloaded: '页面的一部分无法加载：服务器不可用或已更新。内容未丢失：请重新加载页面。',
    broken: '此视图出错：{message}',
    reload: '重新加载',
  },
});

const Reload = ({ message }: { message: string }) => (
  <div class="problem" role="alert">
    <p>{message}</p>
    <button type="button" onClick={() => location.reload()}>
      {text('reload')}
    </button>
  </div>
);

/** Shows a view, once it is loaded; an error in it leaves the rest of the page as it is. */
const Shown = ({ view }: { view: View }) => {
  const [loaded, setLoaded] = useState<ComponentType | 'failed' | undefined>(undefined);
  const [error] = useErrorBoundary((error) => console.error(error));
  useEffect(() => {
    let waited = true;
    view.load().then(
      (module) => waited && setLoaded(() => module.default),
      () => waited && setLoaded('failed'),
    );
    return () => {
      waited = false;
    };
  }, [view]);
  useEffect(() => {
    document.title = `${view.title()} · Souk`;
  });
  if (error !== undefined) return <Reload message={text('broken', { message: String(error) })} />;
  if (loaded === 'failed') return <Reload message={text('unloaded')} />;
  if (loaded === undefined) return <p role="status">{text('loading')}</p>;
  const Loaded = loaded;
  return <Loaded />;
};

export const App = () => {
  const name = address.value.view;
  const view = views.find((view) => view.name === name.split('/')[0]);
  const other = theme.value === 'dark' ? 'light' : 'dark';
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById('content')?.focus(); }}>
        {text('skip')}
      </a>
      <header class="top">
        <a class="brand" href={link('')}>
          Souk
        </a>
        <nav aria-label={text('views')}>
          {views.map((one) => (
            <a key={one.name} href={link(one.name)} aria-current={one === view ? 'page' : undefined}>
              {one.title()}
            </a>
          ))}
        </nav>
        <div class="settings">
          <button type="button" onClick={() => speak(language.value === 'en' ? 'zh' : 'en')} lang={language.value === 'en' ? 'zh-CN' : 'en'}>
            {text('other')}
          </button>
          <button type="button" onClick={() => paint(other)}>
            {text(other)}
          </button>
          <SignIn />
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {view === undefined ? <p role="alert">{text('missing', { name })}</p> : <Shown key={view.name} view={view} />}
      </main>
    </>
  );
};
