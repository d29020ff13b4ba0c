import { render } from "preact";
import { follow } from "./api/events";
import { loadMe, me, refusal } from "./api/me";
import { startRouter } from "./app/router";
import { Shell } from "./app/shell";
import { t } from "./app/strings";
import "./app/theme";
import { Empty, Failure } from "./ui/states";
import "./styles/tokens.css";
import "./styles/base.css";

function App() {
  const refused = refusal.value;
  if (me.value && refused?.status !== 401) return <Shell />;
  if (refused?.status === 401) {
    return (
      <main class="welcome">
        <Empty title={t.value.signIn}>
          <p>{t.value.signInNote}</p>
          <p>
            <code>nacre open</code>
          </p>
        </Empty>
      </main>
    );
  }
  if (refused) {
    return (
      <main class="welcome">
        <Failure problem={refused} retry={loadMe} />
      </main>
    );
  }
  return null;
}

startRouter();
loadMe().then(() => {
  if (me.value) follow();
});

const root = document.getElementById("app");
if (root) render(<App />, root);
