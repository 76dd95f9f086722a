/** The first view: which indexes there are, how much they hold, and how far they are. */
import { useMemo } from 'preact/hooks';

import { link } from '../address';
import { useAnswer } from '../answer';
import { client } from '../calls';
import { IndexService } from '../contract/souk/index/v1/index_pb';
import { bytes, count } from '../format';
import { texts } from '../language';
import { Problem } from '../problem';
import { Scroll } from '../scroll';

const text = texts({
  en: { title: 'What is here', index: 'Index', documents: 'Documents', size: 'Size', lag: 'Changes to catch up with' },
  zh: { title: '这里有什么', index: '索引', documents: '文档', size: '大小', lag: '待追赶的变更' },
});

const Home = () => {
  const indexes = useMemo(() => client(IndexService), []);
  const answer = useAnswer('indexes', (options) => indexes.listIndexes({}, options), 5000);
  return (
    <>
      <h1>{text('title')}</h1>
      <Problem error={answer.error} again={answer.again} />
      {answer.value !== undefined && (
        <Scroll label={text('title')}>
          <table>
            <thead>
              <tr>
                <th>{text('index')}</th>
                <th class="number">{text('documents')}</th>
                <th class="number">{text('size')}</th>
                <th class="number">{text('lag')}</th>
              </tr>
            </thead>
            <tbody>
              {answer.value.indexes.map((index) => (
                <tr key={index.index}>
                  <td>
                    <a href={link('tables', { index: index.index })}>{index.index}</a>
                  </td>
                  <td class="number">{count(index.documents)}</td>
                  <td class="number">{bytes(index.bytes)}</td>
                  <td class="number">{count(index.lagChanges)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
};

export default Home;
