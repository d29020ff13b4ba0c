"""The redactor removes secrets of every kind.

All secrets here are invented: a prefix joined to a generated body, never a literal token.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.redaction.building import build
from nacre.base.text import visible
from nacre.errors import InvalidSettingsError
from nacre.redact.redactor import Redacted, Redactor
from nacre.redact.rules import load_table

ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URL64 = ALNUM + "-_"
BASE64 = ALNUM + "+/"

REDACTOR = Redactor()
GENERATOR = random.Random(20240229)  # noqa: S311


def body(size: int, letters: str = ALNUM) -> str:
    """Generate ``size`` characters with a letter or digit at both ends and a digit inside, like
    real tokens."""
    edge = [letter for letter in letters if letter.isalnum()]
    middle = [GENERATOR.choice(letters) for _ in range(size - 2)]
    middle[len(middle) // 2] = "7" if "7" in letters else middle[len(middle) // 2]
    return GENERATOR.choice(edge) + "".join(middle) + GENERATOR.choice(edge)


def block(label: str, *, lines: int = 6) -> str:
    dashes = "-" * 5
    rows = "\n".join(body(64, BASE64) for _ in range(lines))
    return f"{dashes}BEGIN {label}{dashes}\n{rows}\n{dashes}END {label}{dashes}"


def jwt(segments: int = 3) -> str:
    return ".".join(["ey" + "J" + body(30, URL64), *(body(40, URL64) for _ in range(segments - 1))])


# Rule name -> secrets that are recognised without context.
TOKENS: dict[str, list[str]] = {
    "private-key": [
        block("RSA PRIVATE KEY"),
        block("OPENSSH PRIVATE KEY"),
        block("PRIVATE KEY"),
        block("ENCRYPTED PRIVATE KEY"),
        block("PGP PRIVATE KEY BLOCK"),
        block("EC PRIVATE KEY").replace("\n", "\\n"),
        block("DSA PRIVATE KEY").replace("\n", "\\\\n"),
        block("PRIVATE KEY").rpartition("\n")[0],
    ],
    "service-token": [
        "AV" + "NS_" + body(24),
        "pier_pat" + "_" + body(36),
        "pier-sk" + "_" + body(40),
        "m0" + "-" + body(40),
        "hsk" + "-" + body(40),
        "brv" + "_" + "7kQ-" + body(40, URL64),
        "ctx7" + "sk-" + "-".join(body(n, HEX) for n in (8, 4, 4, 4, 12)),
        "napi" + "_" + body(64, LOWER),
        "nfp" + "_" + body(36),
        "moor-api" + "-" + body(40, LOWER),
        "mhsec" + "_" + body(28),
    ],
    "age-key": ["AGE-SECRET-" + "KEY-1" + body(58, UPPER)],
    "anthropic-key": [
        "sk-" + "ant-api03-" + body(95, URL64),
        "sk-" + "ant-oat01-" + body(60, URL64),
    ],
    "openrouter-key": ["sk-" + "or-v1-" + body(64, HEX)],
    "langfuse-key": ["sk-" + "lf-" + "-".join(body(n, HEX) for n in (8, 4, 4, 4, 12))],
    "openai-key": [
        "sk-" + "proj-" + body(120, URL64),
        "sk-" + "svcacct-" + body(60, URL64),
        "sk-" + "admin-" + body(60, URL64),
        "sess-" + body(40),
    ],
    "openai-style-key": ["sk-" + body(48), "sk-" + body(32, HEX)],
    "sk-key": ["sk-" + "team-" + body(32)],
    "google-key": ["AI" + "za" + body(35, URL64)],
    "google-oauth": ["GOC" + "SPX-" + body(28, URL64), "ya" + "29." + body(80, URL64)],
    "huggingface-token": ["hf" + "_" + body(34), "api_" + "org_" + body(34)],
    "replicate-token": ["r8" + "_" + body(37)],
    "groq-key": ["gsk" + "_" + body(52)],
    "perplexity-key": ["pplx" + "-" + body(48)],
    "xai-key": ["xai" + "-" + body(80)],
    "voyage-key": ["pa" + "-" + body(43)],
    "nvidia-key": ["nvapi" + "-" + body(64, URL64)],
    "cerebras-key": ["csk" + "-" + body(48, LOWER)],
    "fireworks-key": ["fw" + "_" + body(24)],
    "tavily-key": ["tvly" + "-dev-" + body(32), "tvly" + "-" + body(32)],
    "firecrawl-key": ["fc" + "-" + body(32, HEX)],
    "elevenlabs-key": ["sk" + "_" + body(48, HEX)],
    "langsmith-key": ["lsv2" + "_pt_" + body(32, HEX) + "_" + body(10, HEX)],
    "pinecone-key": ["pcsk" + "_" + body(60)],
    "aws-access-key": [
        "AK" + "IA" + "1234567890ABCDEF",
        "AK" + "IA" + "IOSFODNN7EXAMPLE",
        "AK" + "IA" + body(16, UPPER),
        "AS" + "IA" + body(16, UPPER),
    ],
    "aws-bedrock-key": ["ABSK" + body(20) + body(100, BASE64)],
    "digitalocean-token": ["dop" + "_v1_" + body(64, HEX)],
    "cloudflare-token": [
        "v1" + ".0-" + body(24, HEX) + "-" + body(146, HEX),
        "cfut" + "_" + body(40),
    ],
    "fly-token": ["fo1" + "_" + body(43, URL64), "fm2" + "_" + body(20) + body(60, BASE64)],
    "heroku-key": ["HRKU" + "-" + body(60, URL64)],
    "alibaba-key": ["LT" + "AI" + body(20)],
    "vercel-token": ["vercel_blob" + "_rw_" + body(16) + "_" + body(30), "vcp" + "_" + body(56)],
    "vault-legacy-token": ["s" + ".9kq2LmN8oP4rS6tU0vW3xY5z"],
    "vault-token": ["hvs" + "." + body(24, URL64), "hvb" + "." + body(100, URL64)],
    "pulumi-token": ["pul" + "-" + body(40, HEX)],
    "doppler-token": ["dp" + ".pt." + body(43), "dp" + ".st.dev_main." + body(43)],
    "onepassword-token": ["ops" + "_ey" + "J" + body(200, URL64)],
    "databricks-token": ["dapi" + body(32, HEX), "dapi" + body(32, HEX) + "-2"],
    "planetscale-token": [
        "pscale" + "_tkn_" + body(43, URL64),
        "pscale" + "_pw_" + body(43, URL64),
    ],
    "supabase-key": ["sbp" + "_" + body(40, HEX), "sb" + "_secret_" + body(31, URL64)],
    "github-token": [
        *("gh" + kind + "_" + body(36) for kind in "pousr"),
        "github" + "_pat_" + body(22) + "_" + body(59),
    ],
    "gitlab-token": [
        "gl" + "pat-" + body(20, URL64),
        "gl" + "rt-" + body(20, URL64),
        "gl" + "dt-" + body(20, URL64),
    ],
    "bitbucket-token": ["AT" + "BB" + body(32), "AT" + "CTT3" + body(180, URL64)],
    "npm-token": ["npm" + "_" + body(36), "npm" + "_" + "1234567890abcdefghijklmnopqrstuvwxyz"],
    "pypi-token": ["pypi" + "-AgE" + body(150, URL64)],
    "gem-key": ["rubygems" + "_" + body(48, HEX)],
    "crates-token": ["cio" + body(32)],
    "nuget-key": ["oy2" + body(43, LOWER)],
    "docker-token": ["dckr" + "_pat_" + body(27, URL64), "dckr" + "_oat_" + body(32, URL64)],
    "artifactory-key": ["AK" + "Cp" + body(69), "cmVm" + "dGtuO" + body(55)],
    "sonar-token": ["sqp" + "_" + body(40, HEX)],
    "buildkite-token": ["bkua" + "_" + body(40)],
    "circleci-token": ["CCI" + "PAT_" + body(22) + "_" + body(40, HEX)],
    "postman-key": ["PM" + "AK-" + body(24, HEX) + "-" + body(34, HEX)],
    "contentful-token": ["CF" + "PAT-" + body(43, URL64)],
    "stripe-key": [
        "sk" + "_live_" + body(24),
        "rk" + "_live_" + body(99),
        "sk" + "_test_" + body(24),
    ],
    "webhook-secret": ["wh" + "sec_" + body(16) + body(16, BASE64), "wh" + "sec_" + body(32)],
    "square-token": [
        "sq0" + "atp-" + body(22, URL64),
        "sq0" + "csp-" + body(43, URL64),
        "EA" + "AA" + body(60, URL64),
    ],
    "shopify-token": ["shp" + kind + "_" + body(32, HEX) for kind in ("at", "ca", "pa", "ss")],
    "flutterwave-key": ["FLW" + "SECK-" + body(32, HEX) + "-X"],
    "plaid-token": ["access" + "-sandbox-" + "-".join(body(n, HEX) for n in (8, 4, 4, 4, 12))],
    "slack-token": [
        "xox" + "b-" + body(12, string.digits) + "-" + body(12, string.digits) + "-" + body(24),
        "xox" + "p-" + body(60, ALNUM + "-"),
        "xox" + "e.xox" + "p-1-" + body(60),
        "xapp" + "-1-" + body(11, UPPER) + "-" + body(13, string.digits) + "-" + body(64, HEX),
    ],
    "discord-token": ["MT" + "Az" + body(22) + "." + body(6, URL64) + "." + body(38, URL64)],
    "twilio-key": ["S" + "K" + body(32, HEX)],
    "sendgrid-key": ["S" + "G." + body(22, URL64) + "." + body(43, URL64)],
    "mailgun-key": ["key" + "-" + body(32, HEX)],
    "brevo-key": ["xkeysib" + "-" + body(64, HEX) + "-" + body(16)],
    "resend-key": ["re" + "_" + body(8) + "_" + body(24)],
    "facebook-token": ["EA" + "AC" + body(150)],
    "twitter-bearer": ["A" * 22 + body(80)],
    "sentry-token": ["sntrys" + "_" + body(120, URL64), "sntryu" + "_" + body(64, HEX)],
    "newrelic-key": ["NR" + "AK-" + body(27, UPPER)],
    "datadog-token": ["ddpat" + "_" + body(40)],
    "grafana-token": [
        "gl" + "sa_" + body(32) + "_" + body(8, HEX),
        "gl" + "c_" + body(20) + body(80, BASE64),
    ],
    "dynatrace-token": ["dt0" + "c01." + body(24, UPPER) + "." + body(64, UPPER)],
    "posthog-key": ["phx" + "_" + body(43)],
    "honeycomb-key": ["hca" + "ik_" + body(58, LOWER)],
    "linear-key": ["lin" + "_api_" + body(40)],
    "notion-token": ["ntn" + "_" + body(46), "secret" + "_" + body(43)],
    "figma-token": ["figd" + "_" + body(40, URL64)],
    "atlassian-token": ["ATA" + "TT3" + body(186, URL64)],
    "airtable-token": ["pat" + body(14) + "." + body(64, HEX)],
    "dropbox-token": ["sl" + ".u." + body(130, URL64), "sl" + ".B" + body(130, URL64)],
    "clickup-token": ["pk" + "_" + body(8, string.digits) + "_" + body(32, UPPER)],
    "typeform-token": ["tfp" + "_" + body(59)],
    "tailscale-key": ["tskey" + "-auth-" + body(17) + "-" + body(32)],
    "ngrok-key": ["ak" + "_2" + body(26)],
    "mapbox-token": ["sk" + ".ey" + "J" + body(80) + "." + body(22)],
    "clerk-key": ["ak" + "_x" + body(31)],
    "frameio-token": ["fio" + "-u-" + body(64, URL64)],
    "duffel-token": ["duffel" + "_live_" + body(43, URL64)],
    "shippo-token": ["shippo" + "_live_" + body(40, HEX)],
    "easypost-key": ["EZ" + "AK" + body(54)],
    "hubspot-token": ["pat" + "-na1-" + "-".join(body(n, HEX) for n in (8, 4, 4, 4, 12))],
    "adobe-secret": ["p8e" + "-" + body(32)],
    "jwt": [jwt(), jwt(2), jwt(5)],
    "aikido-secret": ["AIK" + "_SECRET_" + body(64)],
    "alibaba-sts": ["STS" + "." + body(30)],
    "access-key": [
        "sc"
        + "_"
        + body(12, LOWER)
        + "."
        + body(5, LOWER)
        + ".acc_"
        + body(12, LOWER)
        + "."
        + body(60)
    ],
    "buildkite-agent": ["bk" + "aa_" + body(75)],
    "canva-secret": ["cn" + "vca" + body(51)],
    "cartesia-key": ["sk" + "_car_" + body(20)],
    "cursor-key": ["key" + "_" + body(64, HEX)],
    "defined-key": ["dn" + "key-" + body(26, LOWER) + "-" + body(52, LOWER)],
    "devcycle-key": ["dvc" + "_server_" + body(20)],
    "devin-key": [
        "apk" + "_user_" + body(120),
        "cog" + "_" + body(52, string.ascii_lowercase + "234567"),
    ],
    "grafana-old-key": ["eyJr" + "Ijoi" + body(80)],
    "intra42-secret": ["s-s4" + "t2ud-" + body(64, HEX)],
    "lichess-token": ["lip" + "_" + body(20)],
    "lob-key": ["live" + "_" + body(35, HEX)],
    "mercury-token": ["mercury" + "_production_wma_" + body(45)],
    "mergify-key": ["mergify" + "_application_key_" + body(60)],
    "midtrans-key": ["Mid" + "-server-" + body(20)],
    "openrouter-management": ["ak" + "-" + body(48)],
    "pagerduty-key": ["pd" + "us+_" + body(20) + "_" + body(30)],
    "persona-key": ["persona" + "_production_" + body(40)],
    "polar-token": ["polar" + "_pat_" + body(40)],
    "ramp-secret": ["ramp" + "_sec_" + body(48)],
    "samsara-token": ["samsara" + "_api_" + body(30)],
    "settlemint-token": ["sm" + "_pat_" + body(16)],
    "unkey-key": ["unkey" + "_" + body(24)],
    "valtown-token": ["vt" + "wn_" + body(40)],
    "render-key": ["rnd" + "_" + body(32)],
    "weights-and-biases-key": ["wandb" + "_v1_" + body(60)],
    "woocommerce-key": ["ck" + "_" + body(40, HEX)],
    "workato-token": ["wrk" + "prod-ey" + "J" + body(20) + "." + body(40) + "." + body(70)],
    "yandex-oauth": ["y0" + "_" + body(56, URL64)],
    "zoho-token": ["10" + "00." + body(32, HEX) + "." + body(32, HEX)],
    "zuplo-key": ["zp" + "ka_" + body(32, LOWER) + "_" + body(8, HEX)],
}

# Rule name -> text before the secret, the secret, and the text after it.
IN_CONTEXT: dict[str, list[tuple[str, str, str]]] = {
    "terraform-token": [("credentials for ", body(14) + ".atlas" + "v1." + body(60), " expire")],
    "aws-secret-key": [
        ("aws_secret_access_key = ", body(40, BASE64), "\n"),
        ('{"SecretAccessKey": "', body(40, BASE64), '"}'),
    ],
    "azure-storage-key": [
        (
            "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=",
            body(86, BASE64) + "==",
            ";EndpointSuffix=core",
        ),
        (
            "Endpoint=sb://bus.example.net/;SharedAccessKeyName=all;SharedAccessKey=",
            body(43, BASE64) + "=",
            "\n",
        ),
    ],
    "azure-sas": [
        ("https://shop.blob.example.net/c/x?sv=2022-11-02&sp=r&sig=", body(43) + "%3D", "&se=1")
    ],
    "webhook": [
        (
            "post to ",
            "https://hooks" + ".slack.com/services/T0123ABCD/B0123ABCD/" + body(24),
            " always",
        ),
        (
            "post to ",
            "https://discord" + ".com/api/webhooks/123456789012345678/" + body(68, URL64),
            " always",
        ),
        (
            "post to ",
            "https://a.webhook" + f".office.com/webhookb2/{body(36)}@{body(36)}/In/" + body(32),
            "\n",
        ),
        (
            "post to ",
            "https://hooks" + ".zapier.com/hooks/catch/1234567/" + body(7, LOWER) + "/",
            " always",
        ),
    ],
    "braintree-token": [
        ("access" + "_token$production$", body(16, LOWER) + "$" + body(32, HEX), "\n")
    ],
    "telegram-token": [
        ("https://api.telegram.org/bot", "123456789:AAF" + body(32), "/sendMessage")
    ],
    "connection-string": [
        ("postgres://shop:", "s3cret!pw", "@db.example.com:5432/shop"),
        ("mysql+pymysql://root:", "hunter2", "@127.0.0.1/x"),
        ('sql.Open("mysql", "app:', "hunter2", '@tcp(db:3306)/shop")'),
        ("mongodb+srv://shop:", "a:b#c", "@cluster0.example.net"),
        ("redis://:", "p4ss", "@cache:6379/0"),
        ("mysql://lager:", "Säge.Öl5", "@10.2.3.4/halle"),
        ("https://me:", "letmein", "@git.example.com/r.git"),
    ],
    "url-token": [
        ("git clone https://", body(40, HEX), "@git.example.com/r.git"),
        ("https://", body(32, HEX), ":@pier.example/2"),
        ("https://pier.example/geo?at=3&key=", body(32, HEX), "&lang=en"),
    ],
    "authorization": [
        ("Authorization: Bearer ", body(24), "\r\n"),
        ("Authorization: KakaoAK ", body(32, HEX), "\r\n"),
        ("-H 'Authorization: Basic ", body(24), "'"),
        ('{\\"authorization\\": \\"Bearer ', body(24), '\\"}'),
        ("authorization: token ", body(40, HEX), "\n"),
    ],
    "bearer-token": [("send bearer ", body(40), " along")],
    "cookie": [
        ("curl -b '", "sid=" + body(24), "' https://example.com"),
        ("Cookie: ", "sid=" + body(24) + "; theme=dark", "\r\n"),
        ("Cookie: theme=dark; ", "sid=" + body(24) + "; a=b", "\r\n"),
        ("url;PHPSESSID=", body(26), "\n"),
        ("Set-Cookie: ", "sid=" + body(24) + "; Path=/; HttpOnly", "\n"),
        ("curl --cookie '", "sid=" + body(24), "'"),
    ],
    "basic-auth": [
        ("sshpass -p '", "opensesame", "' ssh a@b"),
        ("the preview is behind basic auth (pier:", "sandcastle99", "), use that"),
    ],
    "netrc-password": [("machine example.com login me password ", "opensesame", "\n")],
    "sql-password": [
        ("CREATE ROLE shop LOGIN PASSWORD '", "opensesame", "';"),
        ("ALTER LOGIN shop WITH PASSWORD = N'", "Heron{Reed}71", "';"),
    ],
    "password": [
        ("DB_PASSWORD=", "correcthorse", "\n"),
        ("export PGPASSWORD=", "hunter2hunter2", "\n"),
        ("password = '", "battery-staple", "'"),
        ("{'user': ['m.heron'], 'password': ['", "Heron221b!", "']}"),
        ("  user: robot@pier.example\n  password: ", "dklnkpwgjzujuqup", "\n"),
        ("tls:\n  passphrase: >-\n    ", "Quarz-Uhr-Nebel-7", "\n  cert: a.pem"),
        ('{"password": "', "opensesame", '"}'),
        ('{\\"password\\":\\"', "opensesame", '\\"}'),
        ("  password: ", "hunter2hunter2", "\n"),
        ("db.passwd=", "hunter2hunter2", "\n"),
        ("Server=x;Uid=me;Pwd=", "hunter2hunter2", ";"),
        ("const password: string = '", "opensesame", "';"),
        ("DB_PASS=", "correcthorse", "\n"),
        ("dbPass = '", "correcthorse", "'"),
        ("passphrase: ", "Tr0ub4dor&3"[:9] + "abc", "\n"),
        ("  pier_pass: ", "reiher-am-schilf", "\n"),
        ("Uid=me;Pwd={", "heron;Reed}}7", "};"),
        ("DB_PASSWORD=", "ab|cd9Xyz", "\n"),
        ('password := []byte("', "Heron_reed71", '")'),
        ('const char PASSWORD[] = "', "heronreed71", '";'),
    ],
    "secret": [
        ("CLIENT_SECRET=", "aquietlittlesecretplace", "\n"),
        ('client_secret: "', body(32), '"'),
        ("SECRET_KEY_BASE=", body(64, HEX), "\n"),
        ('config["secret"] = "', body(24), '"'),
    ],
    "credential": [
        ("APP_CREDENTIALS=", "aquietlittleplace", "\n"),
        ("credential: '", body(20), "'"),
    ],
    "api-key": [
        ("OPENAI_API_KEY=", body(24), "\n"),
        ('"api_key": "', body(24), '"'),
        ("apiKey: '", body(24), "',"),
        ("X-API-Key: ", body(24, HEX), "\n"),
        ("?v=1&api_key=", body(24), "&x=2"),
        ("DD_API_KEY=", body(32, HEX), "\n"),
        ("ENCRYPTION_KEY=", body(24), "\n"),
        ("DEPLOY_KEY=", "prod:quick-heron-71|" + body(40), "\n"),
    ],
    "token": [
        ("GITHUB_TOKEN=", "aquietlittleplace", "\n"),
        ("access_token: '", body(24), "'"),
        ('{"Token": "', body(32, HEX), '"}'),
        ('"refreshToken":"', body(24), '"'),
        ("//registry.example.org/:_authToken=", body(36), "\n"),
        ("?access_token=", "448118137117791" + "|" + body(27), "&x=1"),
    ],
    "named-token": [
        ("MY_TOKEN=", body(24), "\n"),
        ('"snykToken": "', "-".join(body(n, HEX) for n in (8, 4, 4, 4, 12)), '"'),
    ],
    "asaas-key": [("the key $", "aact" + "_prod_" + body(40), " works")],
    "assignment": [
        ("TOKEN=", "abcd1234", "\n"),
        ('key = "', body(24), '"'),
        ("//registry.example.org/:_auth=", body(24), "\n"),
        ("PIER_AUTH: ", body(40, HEX), "\n"),
        ("session_key = ", body(64, HEX), "\n"),
        ("CHIAVE_CIFRATURA=", body(64, HEX), "\n"),
    ],
    "high-entropy-assignment": [
        ("token_v2 = '", body(40), "'"),
        ('"secretMaterial": "', body(40), '"'),
    ],
    "command-line": [
        ("deploy --password ", "hunter2hunter2", " now"),
        ("deploy --api-key '", body(24), "'"),
        ("deploy --token ", body(24), "\n"),
    ],
    "mailgun-key": [("the newer one is ", "-".join(body(n, HEX) for n in (32, 8, 8)), ";")],
    "jwk-key": [('{"kty":"OKP","x":"' + body(43, URL64) + '","d":"', body(43, URL64), '"}')],
    "pgpass": [
        ("cat ~/.pgpass\ndb.example.com:5432:*:shop:", "heron+Reed7", "\n"),
        ("pier.example:5432:*:replicator:", "moor-shower-6", "\n"),
    ],
    "default-value": [
        ("os.environ.get('DB_PASSWORD', '", "heron-Reed-71", "')"),
        ('password: ENV.fetch("PIER_PASSWORD") { "', "heron-Reed7", '" }'),
        ('p := os.Getenv("PIER_PASS"); p != "" { return p }; return "', "heron-Reed7", '"'),
        ("pier.login=${PIER_PASS:", "Heron.Reed7", "}"),
    ],
    "password-cell": [
        ("host,login,password\npier,me,", "heron-Reed-71", "\n"),
        ("host\tpassword\tport\npier\t", "heron-Reed-71", "\t22\n"),
        ("name    passwort\npier    ", "heron-Reed-71", "\n"),
        ("| service | password |\n|---|---|\n| queue | ", "heron-Reed-71", " |\n"),
        ("| hasło | ", "heron-Reed-71", " |\n"),
        ("| host | pass |\n|---|---|\n| queue | ", "Heron=Reed7", " |\n"),
        ("| host | pass |\n|---|---|\n| queue | ", "k4ppa-Reed", " |\n"),
        ("<td>Kennwort</td><td>", "heron-Reed-71", "</td>"),
    ],
    "key-cell": [
        ("service;api key\npier;", body(32, HEX), "\n"),
        ("| service | clé API |\n|---|---|\n| queue | `", body(32, HEX), "` |\n"),
    ],
    "said-passphrase": [
        (
            "the pass" + "phrase of the signing key is ",
            "amber kettle seven owls",
            ", unlock it once",
        ),
        ("phrase secrète : ", "la loutre mange du velours", "\n"),
        ("wifi is Attic, the key is “", "nine blue herons", "”"),
    ],
    "near-password": [
        ("try logging in with mara@pier.example and ", "Heron#Reed7", " then"),
        ("try ", "8tQz!vRq2Nm", ", that pass" + "word is newer"),
        ("what's the pass" + "word of the scanner?\n\nMara: ", "heron-Reed-71", "\nthanks"),
        (
            "[10:01] Jo: whats the pw\n[10:02] Mara: ",
            "nR6_Heron_Reed",
            "\n[10:02] Mara: delete this",
        ),
    ],
    "filled-field": [
        ('page.getByLabel("Pass' + 'word").fill("', "Heron$Reed_71", '")'),
        ('fill_in "Pass' + 'word", with: "', "Heron$Reed_71", '"'),
    ],
    "signing-secret": [
        ('jwt.sign({ sub: user.id }, "', "the-heron-waits-1987", '", { expiresIn: "1h" })')
    ],
    "mail-login": [
        ("AUTH PLAIN ", base64.b64encode(b"\0mara\0heron-71-reed").decode(), "\n"),
        ("S: 334 UGFzc3dvcmQ6\nC: ", base64.b64encode(b"heron-71-reed").decode(), "\nS: 235 ok"),
    ],
    "stored-parameter": [
        ('"Name": "/prod/db", "Type": "SecureString", "Value": "', "heron-71-reed", '"'),
        ('"Secret' + 'String": "', "heron-71-reed", '"'),
    ],
    "used-as-password": [
        ("use ", "heron-Reed-71", " as the password"),
        ("nimm ", "heron-Reed-71", " als Kennwort"),
        ("用", "heron-Reed-71", "作为密码"),
        ("pick ", "Heron-Reed-71", " for the new password"),
        ("nimm ", "Heron-Reed-71", " für das Passwort"),
        ("поставь ", "Heron-Reed_71", " паролем"),
        ("поставь ", "Heron-Reed_71", " в качестве пароля"),
        ("the pier uses ", "Heron-Reed-71", " as its password"),
    ],
    "secret-argument": [
        ('client.sign_in("api-key", "', "k4T" + body(32), '")'),
        ('config.setApiKey("', body(24), '");'),
    ],
    "defined-value": [
        ('#define PIER_PASS "', "heronreed71", '"\n'),
        ('#  define DEVICE_KEY    "', body(32, HEX), '"\n'),
        ("define('AUTH_KEY',         '", "k|;K9#v!Zp2@Lq8$w^T5&n*B7(m)R1_s+Y4=d", "');"),
    ],
    "key-file": [
        ("$ docker exec pier cat /srv/secrets/initialAdminPassword\n", body(32, HEX), "\n"),
        ("$ cat deploy.key\n", body(32, HEX), "\n"),
        ("$ sudo cat /run/secrets/queue_password\n", "heron-Reed-71", "\n"),
    ],
    "said-password": [
        ("Das Kennwort lautet ", "blauer-reiher-steht", ", sagt sie"),
        ("der Pi hat als Passwort noch immer ", "Heron-Reed_71", "."),
        ("合言葉は", "heron71reed", "です"),
        ("la password del nodo è ", "heron-Reed-71", ", prova"),
        ("hasło do kolejki to ", "Żuraw-Reed-71", ", sprawdź"),
        ("服务器的密码", "heron#Reed7", "，谢谢"),
        ("пароль от почты: ", "Цапля+Reed7", ", проверь"),
        ("heslo zní ", "Heron_71_reed", ", zkus to"),
        ("ο κωδικός είναι ", "Heron#Reed7", ""),
        ("Lösenord till kön är ", "heron-Reed_71", "\n"),
        ("hasło na serwer wygląda tak ", "Heron-Reed-71", ", sprawdź"),
        ("a jelszó most ", "Heron-Reed-71", " lett"),
        ("the password over there now reads ", "Heron-Reed-71", "."),
        ("the router's pw, after the move, was set to ", "Heron.Reed71", ", mind that"),
        ("Kennwort fürs Lager: ", "reiher_am_schilf", " (Netz 2)"),
        ("mot de passe du dépôt : ", "heron-et-roseau", "\n"),
        ("новый пароль теперь ", "Цапля-Reed71", ", запомни"),
        ("het ww is nu ", "Heron&Reed71", "."),
        ("창고 비번은 ", "Heron&Reed71", " 입니다"),
        ("口令已经改成了", "Heron&Reed71", "，请试试"),
        ("PW「", "heron_reed71", "」です"),
        ("das Passwort heißt jetzt „", "Heron Reed 71", "“"),
        ("ssh me@pier.example (password ", "Heron=Reed71", ")"),
    ],
    "said-key": [
        ("la chiave API, adesso è ", body(32, HEX), ": prova"),
        ("klucz API: ", body(32, HEX), " (nowy)"),
        ("der Token ist ", "k4T" + "9x" + "Qm2Zr7Vb3Nw8", ", geht"),
        ("it wants the token ", body(20, "abcdef" + string.digits), " first"),
        ("il codice segreto adesso sarebbe ", body(32), ", prova"),
        ("the data center PAT ", body(40), " works"),
    ],
    "grouped-key": [
        ("la clé à saisir est ", "RKR2 LEX6 JKOZ 2Y2B RRXG FWZM", " (main)"),
        ("the recovery key is ", "K4TO-GL43-ST35-IDEL-SHYR-9TVF", "\n"),
    ],
    "recovery-codes": [
        ("GitHub recovery codes:\n", "1a4b2-7c3dd", "\n"),
        ("codes de secours : ", "1a4b2-7c3dd", "\n"),
        ("use this recovery code instead: ", "x7k2m-9qfpw", "\n"),
        ("back-upcodes: ", "4471 2068", "\n"),
        ("here is a 2fa backup code: ", "8h3n6-2w5vt", "\n"),
    ],
    "pin": [
        ("the PIN for the test phone is ", "840271", "."),
        ("my pin's ", "4821", "\n"),
        ("the menu needs a PIN, it's ", "740316", "."),
        ("the key wants its PIN. It’s ", "48815526", ", pass it on"),
        ("il PIN della barca è ", "58213", ", mettilo nello script"),
    ],
    "one-time-code": [
        ("The verification code is ", "604913", ", go ahead"),
        ("Die SMS-TAN lautet ", "837 204", ".\n"),
        ("J'ai le code de confirmation : ", "219 486", "."),
        ("验证码：", "730158", "，五分钟内有效"),
        ("doğrulama kodu ", "77120", "\n"),
        ("방금 온 인증번호는 ", "481206", "이에요"),
    ],
    "app-password": [
        ("the mailbox takes the app password ", "kuto plin wrfd osem", " only"),
        ("sign it with the app-specific password ", "kuto-plin-wrfd-osem", ""),
        ('EMAIL_HOST_PASSWORD="', "wzqk tmva rbne xhuo", '"\n'),
        ("app password: ", "hfxo qzpt auvk dgnw", "\n"),
    ],
    "licence-key": [("JetBrains licence key: ", "3B4LW-9XK2Q-M8R4T-V7WZ1-YB3NC", "\n")],
    "password-hash": [("root:", "$6$k2Lq8Rm4$" + body(43), ":19000:0:99999:7:::\n")],
    "shown-secret": [
        ("the generated password is shown once\n\n", body(32, HEX), "\n\nIt is kept in a file"),
        ("│ Initial admin password │\n│ ", "heron7Reed99x", " │\n"),
        ("Password for the [pier] user reset.\nNew value: ", "aB+" + body(16), "\n"),
        (
            "##[debug]..Evaluating secrets:\n##[debug]..=> Object\n##[debug]..=> 'PIER'\n##[debug]=> '",
            "heron7Reed9",
            "'\n",
        ),
        ("::add-mask::", "heron7Reed9", "\n"),
        ("$ echo $API_TOKEN\n", body(32, HEX), "\n"),
        ('>>> os.environ["DB_PASSWORD"]\n\'', "heron-Reed7", "'\n"),
        ("$ pass show work/db\n", "Heron_Reed91", "\n"),
    ],
    "bitlocker-key": [("Schlüssel: ", "-".join(body(6, string.digits) for _ in range(8)), "\n")],
    "seed-phrase": [
        (
            'the wallet was made from "',
            "rural agent midnight hybrid major evidence ten divert affair math duck wonder",
            '"',
        ),
        (
            "MNEMONIC=",
            "rural agent midnight hybrid major evidence ten divert affair math duck wonder",
            "\n",
        ),
        (
            "my recovery phrase:\n1. ",
            "rural\n2. agent\n3. midnight\n4. hybrid\n5. major\n6. evidence\n7. ten\n8. divert\n9. affair\n10. math\n"
            "11. duck\n12. wonder",
            "\n",
        ),
    ],
    "attached-password": [("xfreerdp /v:host /u:me /p:", "heron!Reed7", " /cert:ignore")],
    "option-password": [
        ('sqlcmd -S db -U sa -P "', "heron(Reed)71", '" -Q 1'),
        ("ipmi -H pier -U root -P ", "heron-Reed71", " status"),
        ("snow -u me -p ", "heron-Reed71", " status"),
        ("rabbitmqctl add_user me ", "heron-Reed71", "\n"),
    ],
    "account-password": [("curl -u shop:", "heron-Reed-71", " https://example.com")],
    "positional-password": [
        ("htpasswd -bc /srv/.htpasswd me ", "heronReed71", "\n"),
        ('wpa_passphrase "Pier 4" "', "heron-Reed-71", '"'),
        ("net use Z: \\\\nas\\data ", "heron#Reed7", " /user:me"),
        ("ConvertTo-SecureString '", "heron#Reed7", "' -AsPlainText -Force"),
    ],
    "positional-secret": [
        ("gh secret set DEPLOY --body '", "heron!Reed7", "' -R a/b"),
        ("gh auth login --with-token <<< '", body(40, HEX), "'"),
        ('importprivkey "', "K" + "w" + body(50, "abcdefghijkmnopqrstuvwxyz23456789"), '"'),
    ],
    "changed-password": [
        ("echo 'me:", "heron-Reed-71", "' | sudo chpasswd"),
        ("chpasswd <<EOF\nme:", "heron;Reed7", "\nEOF"),
        ("printf 'me:%s\\n' '", "heron-Reed-71", "' | chpasswd"),
    ],
    "said-credentials": [
        ("credentials for the pier: me:", "Heron.Reed71", ""),
        ("log in with me / ", "Heron&Reed71", " there"),
        ("login: demo / ", "Marmalade77", "\n"),
    ],
    "directive": [
        ("user me\nrequirepass ", "Heron-Reed71", "\nport 1"),
    ],
    "device-password": [
        ("snmp-server community ", "heron-71-reed", " RO"),
        (': PSK "', "Heron & reed", '"'),
    ],
    "wifi-key": [
        ("WIFI:S:Pier;T:WPA;P:", "Heron+Reed71", ";;"),
        ("the wifi is called Pier 4, key ", "heron4Reed!Moor", ", that is all"),
        ("der WLAN-Schlüssel lautet ", "4719038826517340", "."),
    ],
    "join-token": [
        ("kubeadm join pier:6443 --token ", "fhmqrk." + "cxjcm38vwgkjivcz", " now"),
    ],
    "basic-credentials": [
        ("it sends Basic ", base64.b64encode(b"me:heron-Reed-71").decode(), " each time"),
    ],
    "totp-secret": [
        ("oathtool --totp -b ", "KR2LEX6JKOZ2Y2BRRXGFWZM7", " tells"),
        ("scan it, or type the setup key ", "kr2l ex6j koz2 y2br rxgf wzm7", " by hand"),
    ],
    "header-key": [
        ('curl -H "X-Pier-Team: ', "k4T9xQm2Zr7Vb3Nw8Lp5", '" https://pier.example'),
    ],
    "twilio-token": [
        ('Client("AC' + body(32, HEX) + '", "', body(32, HEX), '")'),
    ],
    "argument": [
        ('if (strcmp(passwd, "', "heron-Reed7", '") == 0)'),
        ('["redis-server", "--requirepass", "', "e83Kq_zVu1Ydn5", '"]'),
        ('source.setPassword("', "heron-Reed7", '");'),
        ('Client.builder().password("', "heron!Reed", '").build()'),
    ],
    "piped-secret": [
        ('restic --password-command "echo ', "heronReed71", '" snapshots'),
        ("restic --password-file <(echo '", "heronReed71", "') check"),
        ("echo '", "heronReed71", "' | restic -r /srv/r init"),
        ("printf '%s' '", body(40, HEX), "' | gh auth login --with-token"),
        ('echo "', "Heron Reed 71", '" | gpg --passphrase-fd 0 -d pier.gpg'),
        ("echo ", "heron+Reed71", " | sudo -S true"),
        ("echo ", "heronReed", " | sudo -S apt install -y pier"),
    ],
    "wallet-key": [
        ('accounts: ["', "0x" + body(64, HEX), '"],'),
    ],
    "environment-line": [
        ("setx PIER_TOKEN ", body(28), " /M"),
    ],
    "here-string": [("cryptsetup open /dev/pier x <<< '", "heron^Reed7", "'")],
    "credential-pair": [
        ("connect('pier', 'root', '", "Heron^Reed71", "')"),
        ('ftp.login("root", "', "Heron^Reed71", '")'),
        ("new Sequelize('pier', 'root', '", "Heron^Reed71", "', {})"),
        ('HTTPBasicAuth("root", "', "Heron^Reed71", '")'),
    ],
    "byte-array": [
        ("var key = []byte{", ", ".join(f"{17 * n * n % 251:#04x}" for n in range(1, 33)), "}\n"),
        (
            "unsigned char app_secret[] = {",
            ",".join(str(37 * n * n % 255) for n in range(2, 26)),
            "};",
        ),
        ("let key: [u8; 16] = [", ", ".join(f"{89 * n % 255:#04X}" for n in range(1, 17)), "];"),
        ("char password[] = {", ", ".join(map(repr, "moorhen71")) + ", 0", "};"),
        ("KEY = b'", "".join(f"\\x{91 * n % 255:02x}" for n in range(1, 17)), "'"),
    ],
    "oauth-code": [
        ("http://localhost:8085/callback?code=", "4/0A" + body(40, URL64), "&scope=email"),
        ("GET /cb?state=x1&code=", body(20, HEX), " HTTP/1.1"),
        ("grant_type=authorization_code&code_verifier=", body(43), "&a=b"),
    ],
    "sasl-password": [
        ("[smtp.pier.example]:587 mara@pier.example:", "heronReed71", "\n"),
        (
            "$ cat /etc/postfix/sasl_passwd\nmail.pier.example  mara@pier.example:",
            "quietheron",
            "\n",
        ),
        ('PlainLoginModule required\n  user_mara="', "quietheron", '";\n};'),
    ],
    "sent-password": [
        ('expect "*?assword:*" { send "', "quietheron", '\\r" }'),
        ('spawn ssh me@pier\nexpect "password:"\nsend -- "', "quiet heron 7", '\\r"'),
        ("child.expect('assword:')\nchild.sendline('", "heronReed71", "')"),
        ('spawn sftp me@pier\nexpect "assword:"\nsend "', "heronReed72", '\\r"'),
    ],
    "markup": [
        ("<password>", "opensesame", "</password>"),
        ("<apiToken>", body(24), "</apiToken>"),
        ('<entry key="pier.password">', "HeronReed71", "</entry>"),
    ],
}

HARMLESS = [
    "my password manager is 1Password, our password manager: 1Password",
    "the password manager was KeePass2 before; the password generator is diceware-6words",
    "the token budget is 2000, the secret sauce is caching2go, the key vault is kv-prod-7f3a9c2e1b4d",
    "密码管理器是 1Password，密码策略是 min8max64",
    "https://pier.example/?code=SUMMER24&state=CA and https://pier.example/e?code=ECONNREFUSED12",
    "var magic = []byte{0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a}",
    "token_ids = [101, 203, 20, 107, 31, 62, 102, 12, 45, 78, 99, 120, 44, 23, 17, 18]",
    "const key = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]",
    "password: string|null, token: str|bytes, secret: Uint8Array|string, TOKEN=$TOKEN|base64",
    "the initial admin password\nmust be changed\n",
    "server smtp.pier.example:587 tls:starttls",
    'expect "password:"\nsend "$password\\r"',
    "restic --password-command 'pass show backups/nas2'",
    "##[debug]..Evaluating secrets:\n##[debug]..=> Object\n##[debug]=> '***'",
    "prt_0a1b2c3d4e5fGh7Jk9Lm2Np, ses_0a1b2c3d4e5fGh7Jk9Lm2Np, " + "resp_" + "0e5a" * 12,
    '"id": "pier_7kQm2Zr9Vb3Nw8Lp5Tx7kQm2Zr9Vb3Nw8Lp5Tx", cri-containerd-' + "3a02" * 16,
    "pier.py,sha256=m-J4XO7gvFerlYsFzzSXYDvrx8tLZlJFTCgDxctn8ig,1164",
    "task-3f786850e387550fdab836ed7e6dc881de23001b, run-f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "the verification code path is in line 2041",
    "the test ends with exit code 481206",
    "the confirmation code of 2024",
    'PASSWORD="must have some text here"',
    "API_KEY=votre_clé_ici",
    "SECRET_KEY=ersetze_mich_später1",
    "clave primaria duplicada, se omite id=df3fd213-c9b4-4a92-ac38-47d2e6fd1d46",
    "Authorization: required since 2024-10-10",
    '"password": "Passwort", "forgot_password": "Passwort vergessen?"',
    "the LED is on pin 13, the pin of the relay is 21, and pin is 2024-ready",
    "getPassword('primary_db')",
    "docker run -u 1000 -p 8080:80 nginx",
    "the serial number of the board is printed on it: see page 1234",
    "press login / register",
    "key: |\n  some words about it\n",
    "token: 9f86d08",
    "das Passwort ist case-sensitive, the password is base64-encoded",
    "password: read-only",
    "password: auto-generated",
    "password: {{ .Values.pier.password | b64enc | quote }}",
    "password: !reference [.pier, password]",
    'password: "请填写密码"',
    "password_encryption = scram-sha-256",
    "password=user_input, secret: pier-tls",
    "if (password === confirmPassword2) return;",
    'validate("password", "min:8|max:72")',
    "Passwort: siehe Eintrag „Server-2“",
    "it passes `force_refresh=True` on, and tests pass on py312 and node22",
    "keyring.get_password('service1', 'user2') == 'password2'",
    '<input type="password" name="password2" placeholder="New password">',
    "Enter passphrase for key '/home/me/.ssh/id_ed25519': ",
    "public api key " + "pk_live_" + "51H8xYzABCDEFGHIJKLMNOPQ",
    "build key linux-x64-node20-3f8e9a105b6c4d7e",
    "the API key, code 401, request-id 5d8ef797-3fbb-4867-a7c3-cbb2147c4656",
    "der Schlüssel hat den Fingerabdruck 1E86A07A0764FB3B49258D7DE3CA078F5C7C72D5",
    "from the standard: key 000102030405060708090a0b0c0d0e0f",
    "name,email,password_hash\nme,me@pier.example,pending",
    "host, login and password,\nall of them typed twice2",
    "Category\tKey Codes\tPurpose\nPower\tM80, M81\tsupply",
    "mysql -u root -p shop2024",
    'echo "pier:${PIER_PW}" | chpasswd',
    "docker run -u 1000 -p 8080:80 pier",
    'Sentry.init({dsn: "https://'
    + "32c5a4a74e6f6642433b3418c9aa9a62"
    + '@o6541.ingest.sentry.io/17"})',
    "valueFrom: arn:aws:secretsmanager:eu-west-1:112233445566:secret:orders/db-AbC12x:password::",
    "psk=wpa2-personal",
    "the password rotation landed in commit 3f2a9b1c0d4e5f60718",
    "the password change of 2026-04-12T10:00:00 is in OPS-12345",
    "the password manager KeePassXC-2.7.9 works",
    "take SHA-256 for the password digest",
    "the cache key 5d41402abc4b2a76b9719d911017c592 is stale",
    "made with RSA key 4AEE18F83AFDEB23",
    '#define TOKEN_KIND "word-1"',
    "define('AUTH_KEY', 'put your unique phrase here');",
    "cat tokens.py\nimport heron7",
    "twelve plain words: cat dog cat dog cat dog cat dog cat dog cat dog",
    "the password policy says that a secret must rotate",
    "token = tokenize(text)",
    "sorted(rows, key=lambda row: row.name)",
    "sorted(rows, key=itemgetter(1), reverse=True)",
    "password: string",
    "password: str | None = None",
    "interface Login { password: string; token?: string }",
    "max_tokens=4096, tokens: 128000, token_count = 15",
    "id = Column(Integer, primary_key=True)",
    "primary_key: customer_identifier",
    "password = getpass.getpass()",
    "password = settings.database_password",
    "password=password, token=token, api_key=api_key",
    "self.api_key = api_key or os.environ['OPENAI_API_KEY']",
    'api_key = os.environ["ANTHROPIC_API_KEY"]',
    "apiKey: process.env.OPENAI_API_KEY",
    "const token = await getToken(request)",
    "API_KEY=$API_KEY",
    "API_KEY=${API_KEY:-unset}",
    'password: "{{ vault_password }}"',
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "OPENAI_API_KEY=your-key-here",
    "OPENAI_API_KEY=sk-...",
    "GH_TOKEN=github_pat_xxxx",
    "API_TOKEN=<your token>",
    "PASSWORD=changeme",
    "PASSWORD=xxxxxxxxxxxx",
    "PASSWORD=************",
    "API_KEY=%API_KEY%",
    "postgres://$USER:$PASSWORD@localhost/db and postgres://me:${PW}@localhost/db",
    "https://example.com:8080/@scope/package and http://localhost:3000",
    'api_key_env = "OPENAI_API_KEY"',
    'env: { name: "API_TOKEN", key: "my-app-secret" }',
    'fetch(url, { credentials: "same-origin" })',
    "GOOGLE_APPLICATION_CREDENTIALS=/home/me/keys/service.json",
    "PWD=/home/me/projects/shop OLDPWD=/home/me/projects",
    "--- PASS: TestTruncateTranscript/at_u2 (0.00s)",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "index 3f78685..89e6c98 100644",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
    '"id": "f47ac10b-58cc-4372-a567-0e02b2c3d479"',
    "cache_key: 3f786850e387550fdab836ed7e6dc881de23001b",
    '"key": "f47ac10b-58cc-4372-a567-0e02b2c3d479"',
    '{"key": "user.preferences.theme", "token": "identifier"}',
    "onKeyDown: key === 'ArrowDown' || key === 'Backspace'",
    "CACHE_KEY=linux-build-v1",
    "STORAGE_KEY = 'app_settings_v2'",
    'session_key: "agent:main:main"',
    "task-management-system, risk-assessment-framework, disk-usage-analyzer",
    "pip install scikit-learn; import sk-learn-compatible-estimators",
    "hf_hub_download, npm_config_registry, gho_st, r8_",
    "claude-3-5-sonnet-20241022, gpt-4o-mini-2024-07-18",
    '"tool_use_id": "toolu_01DTS5ADvKv8muYNCZLNHDcU"',
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0x\n-----END CERTIFICATE-----",
    "a file that starts with -----BEGIN PRIVATE KEY----- is a private key",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "bearer authentication-middleware",
    "cookie: the browser sends it; set-cookie: sets it",
    "cookies = parse_cookies(header)",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
    '{"input_token": "NextToken", "limit_key": "MaxResults", "key": "FiberForceLengthDeGroote2016"}',
    "def connect(*, password: _PasswordType | None = None) -> None: ...",
    "{'high': 'highpass', 'highpass': 'butterworth'}",
    "between '-----BEGIN RSA PRIVATE KEY-----' and '-----END RSA PRIVATE KEY-----' lies the key",
    "list-tables --starting-token 550e8400-e29b-41d4-a716-446655440000",
    "usage: deploy [--token TOKEN] [--password PASSWORD] --key KEYFILE",
    "  --password  Prompt for the password",
    "密码策略：password 不能为空",
    "Hasło jest wymagane, a wachtwoord: string is optioneel",
    "la contraseña es demasiado corta; Kennwort: steht im Tresor",
    "| field | type |\n|---|---|\n| password | string |\n| token | from environment |",
    'DATABASE_PASSWORD="op://Production/orders-db/password"',
    "the host key is SHA256:" + "cd1wAEli8tACSH4fajveyS9yG4RUpGKIKBABTdF5abc",
    '"password": "••••••••"',
    "errors.password = 'passwordTooWeak';",
    "DB_PASSWORD: ${DB_PASSWORD:?DB_PASSWORD must be set}",
    "db_password: ENC[AES256_GCM,data:vE1IU29RY65q/KiRW9G1uQ==,iv:01ESC/eDdp7CWs4XRM0iqXlEQbr+ftNRFHi5bo=,type:str]",
    "| name | made |\n|---|---|\n| Access pass | 2025-11-02 |",
    "var r=32,o={pwd:1,key:2};e.getToken=n,e.keySize=r",
    "the login credentials form is in src/Login2.tsx, its tests run with Node20",
    "n.apiKey===t?r(e):e.passwd}(window);//# sourceMappingURL=pier.b7a55e052ffc4fb688a9.min.js.map",
    "INSERT INTO boats (name, password_policy, age) VALUES ('Heron', NULL, 7), ('Plover', '', 12);",
    "the setup key step that this page says must come last",
    "rooms &lt;a&gt; and https%3A%2F%2Fexample.com%2Fpassword%2Freset",
]

EVERY_TOKEN = [(name, secret) for name, secrets in TOKENS.items() for secret in secrets]
EVERY_CONTEXT = [(name, *parts) for name, contexts in IN_CONTEXT.items() for parts in contexts]
EVERY_SECRET = [secret for _, secret in EVERY_TOKEN] + [secret for _, _, secret, _ in EVERY_CONTEXT]


def mark(name: str) -> str:
    return f"[REDACTED:{name}]"


@pytest.mark.parametrize(("name", "secret"), EVERY_TOKEN)
def test_a_token_is_replaced_in_prose_and_the_prose_stays(name: str, secret: str) -> None:
    assert REDACTOR.redact(f"use {secret} here") == Redacted(f"use {mark(name)} here", {name: 1})


@pytest.mark.parametrize(("name", "secret"), EVERY_TOKEN)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("`", "`"),
        ('{"x": "', '"}'),
        ("(", ")."),
        ("\\n", "\\n"),
        ("密钥是", "。"),
        ("> ", "\n"),
    ],
)
def test_token_is_removed_in_every_position(
    name: str, secret: str, before: str, after: str
) -> None:
    cleaned = REDACTOR.clean(before + secret + after)
    assert secret not in cleaned
    assert cleaned.startswith(before)
    assert cleaned.endswith(after)


@pytest.mark.parametrize(("name", "secret"), [pair for pair in EVERY_TOKEN if "\n" not in pair[1]])
def test_a_token_in_a_raw_json_line_leaves_valid_json(name: str, secret: str) -> None:
    line = json.dumps({"text": f'export X="{secret}"\n{secret}\n', "n": 1}, ensure_ascii=False)
    parsed = json.loads(REDACTOR.clean(line))
    assert secret not in parsed["text"]
    assert parsed["n"] == 1


@pytest.mark.parametrize(("name", "before", "secret", "after"), EVERY_CONTEXT)
def test_secret_known_by_context_is_replaced_and_context_stays(
    name: str, before: str, secret: str, after: str
) -> None:
    assert REDACTOR.redact(before + secret + after) == Redacted(
        before + mark(name) + after, {name: 1}
    )


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert REDACTOR.redact(text).text is text
    assert REDACTOR.redact(text).counts == {}


def test_every_rule_finds_a_planted_secret() -> None:
    hit = {rule for sample in build() for rule in REDACTOR.redact(sample.text).counts}
    assert {rule.name for rule in load_table().rules} == hit | TOKENS.keys() | IN_CONTEXT.keys()


def test_rule_names_are_slugs_and_rules_have_literals() -> None:
    for rule in load_table().rules:
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", rule.name)
        assert rule.literals
        assert not rule.ignore_case or all(literal == literal.lower() for literal in rule.literals)


def test_unrestricted_literals_are_found_in_capitals() -> None:
    table = load_table()
    for literal in table.anywhere:
        assert (literal, 4) in set(table.hints.find(b"see " + literal.upper() + b" here"))


def test_literal_never_spans_several_texts() -> None:
    rules = load_table().rules
    assert not any(b"\n" in literal for rule in rules for literal in rule.literals)


def test_literal_is_searched_either_case_sensitively_or_insensitively() -> None:
    rules = load_table().rules
    heeding = {literal for rule in rules if not rule.ignore_case for literal in rule.literals}
    assert not heeding & {
        literal for rule in rules if rule.ignore_case for literal in rule.literals
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [("docs://me:", "@git.example.com"), ("-----Bearer ", " here"), ("see -----bearer ", "")],
)
def test_hint_does_not_hide_a_secret_starting_within_it(before: str, after: str) -> None:
    secret = body(40)
    assert secret not in REDACTOR.clean(before + secret + after)


def test_private_key_without_an_end_is_cut_after_its_lines() -> None:
    head, _, _ = block("RSA PRIVATE KEY").rpartition("\n")
    assert (
        REDACTOR.clean(f"{head}\n\nSo that was the key.")
        == f"{mark('private-key')}\n\nSo that was the key."
    )


def test_several_secrets_are_counted_by_rule() -> None:
    first, second = TOKENS["github-token"][:2]
    result = REDACTOR.redact(f"{first} {second}\npassword = 'opensesame'")
    assert result.counts == {"github-token": 2, "password": 1}


def test_found_counts_name_rules_and_never_show_secrets() -> None:
    counts = REDACTOR.redact("\n".join(EVERY_SECRET)).counts
    assert set(counts) <= {rule.name for rule in load_table().rules}
    assert all(isinstance(count, int) for count in counts.values())


def test_secret_amid_another_script_keeps_its_neighbours() -> None:
    assert (
        REDACTOR.clean("设置 password=hunter2hunter2，然后继续 🎉")
        == f"设置 password={mark('password')}，然后继续 🎉"
    )


def test_lone_surrogates_are_preserved() -> None:
    text = "\ud800 password='opensesame' \udfff"
    assert REDACTOR.clean(text) == f"\ud800 password='{mark('password')}' \udfff"


def test_text_without_secrets_is_returned_as_the_same_object() -> None:
    text = "nothing to see, tokens and keys included: " * 50
    assert REDACTOR.clean(text) is text


@pytest.mark.parametrize(
    "number", ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"]
)
def test_payment_cards_are_redacted_only_if_enabled(number: str) -> None:
    text = f"charge {number}, order 4111111111111112, at 1700000000000"
    assert REDACTOR.clean(text) == text
    assert Redactor(kinds=["payment_cards"]).clean(text) == text.replace(
        number, mark("payment-card")
    )


def test_owner_pattern_redacts_its_matches() -> None:
    redactor = Redactor(extra_patterns=[r"ACME-\d{4}", "Königsweg"])
    result = redactor.redact("ticket ACME-1234 für Königsweg 🎉 ACME-9")
    assert result == Redacted(f"ticket {mark('owner')} für {mark('owner')} 🎉 ACME-9", {"owner": 2})


def test_owner_pattern_cannot_remove_a_marker() -> None:
    redactor = Redactor(extra_patterns=["REDACTED|jwt|[a-z]+"])
    once = redactor.clean(f"{jwt()} abc")
    assert once == f"{mark('jwt')} {mark('owner')}"
    assert redactor.clean(once) == once


def test_text_that_exceeds_the_pattern_time_limit_is_removed() -> None:
    redactor = Redactor(extra_patterns=["(a|aa)+$"])
    endless = "a" * 60 + "!"
    assert redactor.redact(f"before\n{endless}") == Redacted(mark("owner"), {"owner": 1})
    assert redactor.clean_all(["quick aaa", endless, "other"]) == [
        f"quick {mark('owner')}",
        mark("owner"),
        "other",
    ]


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a*", "", "(?<=a*)b"])
def test_an_unusable_owner_pattern_is_refused_with_a_hint(pattern: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Redactor(extra_patterns=[pattern])
    assert caught.value.hint


def test_allowed_secret_stays_and_others_are_removed() -> None:
    allowed, other = TOKENS["npm-token"][0], TOKENS["gitlab-token"][0]
    redactor = Redactor(extra_patterns=["ACME"], allow=[allowed, "opensesame", "ACME"])
    assert (
        redactor.clean(f"{allowed} password='opensesame' ACME")
        == f"{allowed} password='opensesame' ACME"
    )
    assert redactor.clean(other) == mark("gitlab-token")


FRAGMENTS = st.sampled_from(
    [
        *EVERY_SECRET,
        *HARMLESS,
        "password=",
        "api_key: '",
        "'",
        '"',
        "\\n",
        "\n",
        " ",
        "=",
        "://",
        ":",
        "@",
        "x" * 9,
        "[REDACTED:",
        "Cookie: a=",
        "Authorization: Bearer ",
        mark("jwt"),
        mark("token"),
        "]",
        "-",
        "_",
        ".",
        "密",
        "--token ",
    ]
)


def test_secret_cut_at_the_length_limit_leaves_whole_characters() -> None:
    for length in range(190, 210):
        text = "deploy --token " + "a1B2" * (length // 4) + "x" * (length % 4) + "密密"
        assert REDACTOR.clean(text).startswith("deploy --token [REDACTED:")


@given(st.lists(FRAGMENTS | st.text(max_size=12), max_size=12).map("".join))
@example("password=abcdefgh" + mark("jwt") + "ijklmnop")
@example("a\x80\x1b0" + TOKENS["service-token"][3])
@example("postgres://u:" + mark("openai-key") + "@h and postgres://u:a" + mark("jwt") + "b@h")
@example(mark("api-key") + "=abcd1234efgh5678")
def test_redaction_is_idempotent(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.clean(once.text) == once.text
    assert bool(once.counts) == (once.text != visible(text))


@given(
    st.lists(st.sampled_from(EVERY_SECRET[: len(EVERY_TOKEN)]), min_size=1, max_size=6),
    st.sampled_from(["\n", " ", "\t", '", "', ", "]),
)
def test_adjacent_secrets_are_all_removed(secrets: list[str], separator: str) -> None:
    cleaned = REDACTOR.clean(separator + separator.join(secrets) + separator)
    assert not any(secret in cleaned for secret in secrets)


@given(st.lists(st.lists(FRAGMENTS | st.text(max_size=12), max_size=6).map("".join), max_size=12))
@example(["password:", "hunter2hunter2", "kind: Secret", "data:", "  x: " + "QUJD" * 9])
@example(
    [
        "curl -u me:",
        "",
        "\u200b",
        "\x1b[1m" + TOKENS["jwt"][0],
        "<private>",
        "x</private>",
        TOKENS["jwt"][0],
    ]
)
def test_batch_redaction_equals_single_redaction(texts: list[str]) -> None:
    for redactor in (
        REDACTOR,
        Redactor(extra_patterns=["^x", "[a-z]+ $"], allow=["hunter2hunter2"]),
    ):
        assert redactor.clean_all(texts) == [redactor.clean(text) for text in texts]


def test_equal_texts_in_a_batch_are_redacted_equally() -> None:
    texts = ["pier", TOKENS["jwt"][0], "pier", TOKENS["jwt"][0]]
    assert REDACTOR.clean_all(texts) == ["pier", mark("jwt")] * 2


def test_batch_of_any_size_redacts_every_secret() -> None:
    texts = [f"{number} " + "harmless words " * (number % 40) for number in range(3000)]
    hidden = {
        17: TOKENS["npm-token"][0],
        1500: EVERY_CONTEXT[0][1] + EVERY_CONTEXT[0][2],
        2999: TOKENS["jwt"][0],
    }
    for number, secret in hidden.items():
        texts[number] += secret
    cleaned = REDACTOR.clean_all(texts)
    assert {
        number for number, text in enumerate(texts) if cleaned[number] is not text
    } == hidden.keys()


UNITS = [
    *(
        "a",
        "=",
        '"',
        "'",
        "\\",
        " ",
        "-",
        "_",
        ".",
        "A",
        "0",
        "\\n",
        "-----BEGIN",
        "-----BEGIN PRIVATE KEY-----\n",
        "eyJ",
        ".eyJ",
    ),
    *(
        "eyJaaaaaaaaa.",
        "://",
        "a://b:",
        "a://b:c@",
        "a://b?sig=",
        "key=",
        "key  =  ",
        "token: ",
        "password",
        "pass=",
        "secret_key",
    ),
    *(
        'api_key="',
        "sk-",
        "AKIA",
        "sk-ant-aaaaaaaaaaaaaaaaaaa-",
        "cookie: a=",
        "authorization: bearer ",
        "--token ",
        "<token>",
    ),
    *(
        "login a password ",
        "[REDACTED:",
        "[REDACTED:jwt]",
        "key: str",
        "1:AAA",
        "MTAw.",
        "SG.aaaaaaaaaaaaaaaaaa.",
        "密",
    ),
]


def test_long_repetitive_text_is_redacted_in_time() -> None:
    for unit in UNITS:
        text = (unit * (100_000 // len(unit) + 1))[:100_000]
        assert REDACTOR.clean(text), unit


def test_megabyte_of_distinct_secrets_is_redacted() -> None:
    numbers = range(1_000_000 // 60)
    text = "\n".join(
        f"x-{'gh' + 'p'}_{number:05d}{'aZ9' * 12} password='{number}correcthorse'"
        for number in numbers
    )
    assert REDACTOR.redact(text).counts == {"github-token": len(numbers), "password": len(numbers)}


def test_terminal_colours_do_not_hide_a_secret() -> None:
    token = "ghp_" + "a8Kd93jf" * 5
    redacted = Redactor().clean(f"token: \x1b[1;32m{token}\x1b[0m and \x1b]0;title\x07text")
    assert redacted == "token: [REDACTED:github-token] and text"


def test_zero_width_characters_do_not_split_a_secret() -> None:
    token = "ghp_" + "a8Kd93jf" * 5
    assert token[5:] not in Redactor().clean(f"use {token[:12]}\u200b{token[12:]} here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "my salary is <private>a lot</private>, as you know",
            "my salary is [private], as you know",
        ),
        ("<PRIVATE>a</Private> b", "[private] b"),
        ("a <private>b <private>c</private> d</private> e", "a [private] e"),
        ("a <private>\nb\n\nc and never closed", "a [private]"),
        ("```\n<private>\nb\n</private>\n```", "```\n[private]\n```"),
        ('{"a": "\\u003cprivate\\u003eb\\u003c/private\\u003e"}', '{"a": "[private]"}'),
        ('{"a": "<private>b<\\/private>"}', '{"a": "[private]"}'),
        ("&lt;private&gt;b&lt;/private&gt; c", "[private] c"),
        ('<private reason="health">b</private>', "[private]"),
        ("<private>x</private><private>y</private>", "[private][private]"),
        ("a <private\n>\nb</private\n> c", "a [private] c"),
        ("a <\n private>b</ private> c", "a [private] c"),
    ],
)
def test_text_marked_private_is_replaced(text: str, expected: str) -> None:
    assert REDACTOR.clean(text) == expected
    assert REDACTOR.clean(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "private key",
        "usage: tool <private key> <file>",
        "class A: private: int x;",
        "b</private> c",
    ],
)
def test_word_private_alone_hides_nothing(text: str) -> None:
    assert REDACTOR.clean(text) is text


@pytest.mark.parametrize(
    "hidden", ["\u00ad", "\u200e", "\u202e", "\u2063", "\u034f", "\ufe0f", "\U000e0041", "\u200d"]
)
def test_invisible_characters_do_not_split_a_secret(hidden: str) -> None:
    token = "ghp_" + "A1b2C3d4E5f6G7h8J9k0L1m2N3p4Q5r6S7t8"
    text = f"the gateway takes {token[:10]}{hidden}{token[10:]} for calls"
    redactor = Redactor()
    assert redactor.clean(text) == "the gateway takes [REDACTED:github-token] for calls"
    assert redactor.clean_all([text]) == [redactor.clean(text)]


def test_secret_part_after_an_invisible_character_is_removed() -> None:
    assert "cdEf" not in Redactor().clean("password = hunter2xyzAB\u00adcdEfgh99 end")


def test_many_consecutive_joiners_are_processed_quickly() -> None:
    text = "a" + "\u200d" * 30_000 + " b"
    assert Redactor().clean(text) == text


def test_secret_in_fullwidth_letters_is_redacted() -> None:
    token = "ghp_" + "A1b2C3d4E5f6G7h8J9k0L1m2N3p4Q5r6S7t8"
    wide = "".join(chr(ord(item) + 0xFEE0) if item.isalnum() else item for item in token)
    assert "REDACTED" in Redactor().clean(f"the gateway takes {wide} for calls")


def test_text_without_hidden_secrets_is_unchanged() -> None:
    text = "ＡＢＣＤＥＦＧＨＩ，你好 soft\u00adhyphen \U0001f468\u200d\U0001f469"
    assert Redactor().clean(text) is text


def test_escaped_terminal_colours_do_not_hide_a_secret() -> None:
    token = TOKENS["replicate-token"][0]
    assert token not in REDACTOR.clean(json.dumps({"out": f"\x1b[32m{token}\x1b[0m"}))


def test_kubernetes_secret_values_are_removed_and_names_stay() -> None:
    first, second = body(24, BASE64), body(40, BASE64)
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  user: {first}\n  url: {second}\n---\n"
    cleaned = REDACTOR.clean(text)
    assert first not in cleaned
    assert second not in cleaned
    assert cleaned.startswith("apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n")


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("?next=%2Fin%3Fuser%3Dme%26password%3D", "heron%2BReed71", "&x=1"),
        (
            "&lt;add key=&quot;SmtpPassword&quot; value=&quot;",
            "heron&#43;Reed&amp;71",
            "&quot; /&gt;",
        ),
        ("{\\u0022password\\u0022: \\u0022", "heron-Reed-71", "\\u0022}"),
        ("\\u5bc6\\u7801: ", "heron-Reed-71", " \\u8c22"),
    ],
)
def test_secret_is_found_through_escapes_and_replaced_exactly(
    before: str, secret: str, after: str
) -> None:
    cleaned = REDACTOR.clean(before + secret + after)
    assert "heron" not in cleaned
    assert "71" not in cleaned
    assert cleaned.startswith(before)
    assert cleaned.endswith(after)
    assert REDACTOR.clean(cleaned) == cleaned


def test_secret_is_found_through_nested_escapes() -> None:
    text = "next=%252Fin%253Fuser%253Dme%2526password%253Dheron-Reed-71%2526x%253D1"
    assert REDACTOR.clean(text) == text.replace("heron-Reed-71", mark("password"))


def test_assigned_base64_text_containing_a_secret_is_removed() -> None:
    secret = base64.b64encode(
        b"PIER_SECRET=" + b"45ee3e47ce5edd06c05ca19d4cfaa0" + b"\nPIER_USER=me\n"
    ).decode()
    assert REDACTOR.clean(f"PIER_B64={secret}\n") == f"PIER_B64={mark('secret')}\n"


def test_base64_text_is_removed_only_with_a_secret() -> None:
    secret = base64.b64encode(b"DB_HOST=10.0.0.4\nDB_PASSWORD=heron-Reed-71\n").decode()
    plain = base64.b64encode(b"Good morning, here is the letter of May for all of you.").decode()
    assert (
        REDACTOR.clean(f"it says {secret}, and {plain}")
        == f"it says {mark('password')}, and {plain}"
    )


@pytest.mark.parametrize("prefix", ["", "[web-1] ", "> ", "key.pem:{n}:", "{n}\t", "+"])
def test_private_key_tail_is_removed_after_any_line_prefix(prefix: str) -> None:
    rows = block("RSA PRIVATE KEY").split("\n")[3:]
    text = "\n".join(
        ["the end of it:", *(prefix.format(n=n) + row for n, row in enumerate(rows)), "so it ends"]
    )
    cleaned = REDACTOR.clean(text)
    assert not any(row in cleaned for row in rows)
    assert cleaned.startswith("the end of it:\n")
    assert cleaned.endswith("\nso it ends")


def test_tail_of_a_key_with_a_checksum_is_removed() -> None:
    rows = [
        *block("PGP PRIVATE KEY BLOCK").split("\n")[3:-1],
        "=rN7e",
        block("PGP PRIVATE KEY BLOCK").split("\n")[-1],
    ]
    cleaned = REDACTOR.clean("\n".join(f"   {n}\t{row}" for n, row in enumerate(rows)))
    assert not any(row in cleaned for row in rows)


def test_private_key_head_is_removed_after_any_line_prefix() -> None:
    rows = block("EC PRIVATE KEY").split("\n")[:4]
    cleaned = REDACTOR.clean(
        "\n".join(f"{n}:{row}" for n, row in enumerate(rows)) + "\n\nand so on"
    )
    assert not any(row in cleaned for row in rows)
    assert cleaned.endswith("\n\nand so on")


def test_only_cells_below_secret_headings_are_removed() -> None:
    head = "| host | password | port |\n|---|:--|---|\n"
    text = (
        head
        + "| a1.example | heron-Reed-71 | 5432 |\n| b2.example | dr1ft.Plover | 5433 |\n\nuse b2-Example"
    )
    cleaned = REDACTOR.clean(text)
    expected = mark("password-cell")
    assert (
        cleaned
        == head
        + f"| a1.example | {expected} | 5432 |\n| b2.example | {expected} | 5433 |\n\nuse b2-Example"
    )


@pytest.mark.parametrize("values", ["VALUES", "values\n  "])
def test_only_secret_columns_of_sql_inserts_are_removed(
    values: str,
) -> None:
    head = f"INSERT INTO `crew` (`id`, `mail`, `password`, `since`) {values}"
    rows = "(1, 'a(1), b@x.example', '{}', now()),\n(2, 'it''s@x.example', '{}', '2019-04-02');"
    cleaned = REDACTOR.clean(head + rows.format("Heron_Reed7", "moor.Plover9"))
    assert cleaned == head + rows.format(mark("password-cell"), mark("password-cell"))


def test_only_secret_columns_of_a_dump_copy_are_removed() -> None:
    text = "COPY public.crew (id, password, since) FROM stdin;\n1\t{}\t2019\n2\t{}\t2020\n\\.\n\nSELECT 1;"
    cleaned = REDACTOR.clean(text.format("Heron_Reed7", "dr1ft.Plover"))
    assert cleaned == text.format(mark("password-cell"), mark("password-cell"))


def test_secret_column_of_a_printed_database_table_is_removed() -> None:
    key = body(40, LOWER)
    text = " id |  partner |  api_key  | active\n----+----------+-----------+--------\n  1 | pier     | {} | t\n(1 row)\n"  # noqa: E501
    assert REDACTOR.clean(text.format(key)) == text.format(mark("key-cell"))


def test_long_list_of_logins_keeps_no_password() -> None:
    secrets = [f"Heron-Reed-{number}" for number in range(100, 160)]
    cleaned = REDACTOR.clean(
        "\n".join(f"mara{number} pw {secret}" for number, secret in enumerate(secrets))
    )
    assert not [secret for secret in secrets if secret in cleaned]
