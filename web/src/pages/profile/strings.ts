import { texts } from "../../i18n/index";

export const t = texts({
  en: { soon: "Nothing here yet" },
  zh: { soon: "暂无内容" },
});
