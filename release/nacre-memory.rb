# Homebrew formula. After the first release, fill in homepage, url and sha256, and write the resources with
# `brew update-python-resources --package-name="nacre-memory[full]" nacre-memory`.
class NacreMemory < Formula
  include Language::Python::Virtualenv

  desc "Long-term memory for AI agents: local, yours, in Markdown"
  homepage "[homepage: to be filled in]"
  url "[address of nacre_memory-0.1.0.tar.gz: to be filled in]"
  sha256 "[hash of it: to be filled in]"
  license "Apache-2.0"

  depends_on "python@3.13"

  # resources: to be written by brew

  service do
    run [opt_bin/"nacre", "serve"]
    keep_alive true
    log_path var/"log/nacre.log"
    error_log_path var/"log/nacre.log"
  end

  def install
    virtualenv_install_with_resources
  end

  test do
    ENV["HOME"] = testpath
    assert_match version.to_s, shell_output("#{bin}/nacre --version")
    system bin/"nacre", "store", "The ferry leaves from pier seven."
    assert_match "pier seven", shell_output("#{bin}/nacre recall 'where does the ferry leave?'")
  end
end
