const View = () => <p>…</p>;
export default View;
