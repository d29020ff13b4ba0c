import { render } from "preact";
import { isStranger } from "./api/client";
import { follow } from "./api/events";
import { takeKey } from "./api/key";
import { loadMe, me, refusal } from "./api/me";
import { preloadAt } from "./app/outlet";
import { path, startRouter } from "./app/router";
import { Shell } from "./app/shell";
import { t } from "./app/strings";
import "./app/theme";
import { Empty, Failure } from "./ui/states";
import "./styles/tokens.css";
import "./styles/base.css";

function App() {
  const refused = refusal.value;
  if (isStranger.value) {
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
  if (me.value) return <Shell />;
  if (refused) {
    return (
      <main class="welcome">
        <Failure problem={refused} retry={loadMe} />
      </main>
    );
  }
  return null;
}

takeKey();
startRouter();
preloadAt(path.peek());
loadMe().then(() => {
  if (me.value) follow();
});

const root = document.getElementById("app");
if (root) render(<App />, root);
