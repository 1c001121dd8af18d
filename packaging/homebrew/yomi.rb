# A formula for a tap, for a release on PyPI: set the version and the sdist's checksum.
# Homebrew's own repository would require every dependency as a resource, compiled from source.
class Yomi < Formula
  include Language::Python::Virtualenv

  desc "Playing engine for Go and shogi"
  homepage "https://pypi.org/project/yomi-engine/"
  url "https://pypi.org/packages/source/y/yomi-engine/yomi_engine-0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license all_of: ["GPL-3.0-or-later", "GPL-3.0-only", :cannot_represent]

  depends_on "python@3.13"

  def install
    virtualenv_create(libexec, "python3.13")
    system libexec/"bin/python", "-m", "ensurepip"
    system libexec/"bin/python", "-m", "pip", "install", buildpath
    bin.install_symlink [libexec/"bin/yomi", libexec/"bin/yomi-usi"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/yomi --version")
  end
end
